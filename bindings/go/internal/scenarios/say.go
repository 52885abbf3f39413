package main

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"libdsh.org/dsh"
)

// codes are the names of error codes in C, without their prefix.
var codes = map[dsh.Code]string{
	dsh.ErrNull:               "NULL",
	dsh.ErrInvalid:            "INVALID",
	dsh.ErrStruct:             "STRUCT",
	dsh.ErrFlags:              "FLAGS",
	dsh.ErrCommandNUL:         "COMMAND_NUL",
	dsh.ErrEnvName:            "ENV_NAME",
	dsh.ErrEnvReserved:        "ENV_RESERVED",
	dsh.ErrEnvTooBig:          "ENV_TOO_BIG",
	dsh.ErrWorkdirMissing:     "WORKDIR_MISSING",
	dsh.ErrWorkdirNotDir:      "WORKDIR_NOT_DIR",
	dsh.ErrWorkdirDenied:      "WORKDIR_DENIED",
	dsh.ErrWorkdirUnusable:    "WORKDIR_UNUSABLE",
	dsh.ErrShellMissing:       "SHELL_MISSING",
	dsh.ErrCancelled:          "CANCELLED",
	dsh.ErrShutdown:           "SHUTDOWN",
	dsh.ErrSpawn:              "SPAWN",
	dsh.ErrSandboxUnavailable: "SANDBOX_UNAVAILABLE",
	dsh.ErrTimedOut:           "TIMED_OUT",
	dsh.ErrSystem:             "SYSTEM",
	dsh.ErrOutOfMemory:        "OUT_OF_MEMORY",
	dsh.ErrForked:             "FORKED",
	dsh.ErrPanic:              "PANIC",
}

// fail prints an error.
func (p *play) fail(err error) {
	var failure *dsh.Error
	if !errors.As(err, &failure) {
		p.say("error %s", err)
		return
	}
	errno := ""
	if failure.Errno != 0 {
		errno = " errno=" + strconv.Itoa(int(failure.Errno))
	}
	p.say("error %s stage=%s%s %s", codes[failure.Code], failure.Stage, errno, quote(failure.Message))
}

func (p *play) result(r *dsh.Result, hasInput bool) {
	if !r.Success() {
		p.exit(&r.Outcome)
	}
	p.outcome(&r.Outcome, len(r.HeldBy), len(r.Survivors))
	p.sandbox(r.Sandbox, true)
	p.captured("stdout", &r.Stdout)
	p.captured("stderr", &r.Stderr)
	if r.Timeout != 2*time.Minute {
		p.say("timeout %d", inMillis(r.Timeout))
	}
	if hasInput {
		p.say("input %d", r.InputWritten)
	}
	p.scrubbed(r.Scrubbed)
}

func (p *play) state(s *dsh.ProcessState, hasInput bool) {
	p.say("status %v", s.Status)
	if s.Exit != dsh.ExitNone {
		p.exit(&s.Outcome)
	}
	p.outcome(&s.Outcome, len(s.HeldBy), len(s.Survivors))
	p.sandbox(s.Sandbox, s.Status != dsh.StatusRunning)
	p.count("out", s.StdoutTotal)
	p.count("err", s.StderrTotal)
	if hasInput {
		p.say("input %d", s.InputWritten)
	}
	if s.Tag != 0 {
		p.say("tag %d", s.Tag)
	}
}

func (p *play) exit(o *dsh.Outcome) {
	switch o.Exit {
	case dsh.ExitCode:
		p.say("exit code %d", o.Code)
	case dsh.ExitSignal:
		p.say("exit signal %d", int(o.Signal))
	default:
		p.say("exit %v", o.Exit)
	}
}

func (p *play) outcome(o *dsh.Outcome, holders, survivors int) {
	if o.TimedOut {
		p.say("timed out")
	}
	if o.Aborted {
		p.say("aborted")
	}
	if o.Cause != dsh.StopNone {
		p.say("cause %v", o.Cause)
	}
	if o.StoppedBy != dsh.StopNone {
		p.say("stopped by %v", o.StoppedBy)
	}
	if o.Stage != dsh.StageNone {
		p.say("stage %v", o.Stage)
	}
	if o.PipesHeld {
		p.say("pipes held")
	}
	p.count("held by", int64(holders))
	p.count("survivors", int64(survivors))
}

func (p *play) sandbox(f *dsh.SandboxFacts, settled bool) {
	if f == nil {
		return
	}
	p.say("sandbox %v %v %v %v", f.Mode, f.Backend, f.Enforcement, f.Network)
	if len(f.Missing) > 0 {
		p.say("missing %s", strings.Join(f.Missing, " "))
	}
	switch {
	case f.RunnerFailed != "":
		p.say("runner failed")
	case settled:
		p.say("denied %v", f.Denied)
	}
	if f.Denied == dsh.DeniedYes {
		p.say("denied path %s rule %s", quote(f.DeniedPath), quote(f.DeniedRule))
	}
}

// count prints a number that is not 0.
func (p *play) count(what string, n int64) {
	if n != 0 {
		p.say("%s %d", what, n)
	}
}

func (p *play) captured(name string, c *dsh.Captured) {
	if c.Total == 0 {
		return
	}
	facts := []string{name, "total=" + strconv.FormatInt(c.Total, 10)}
	if c.Omitted != 0 {
		facts = append(facts, "omitted="+strconv.FormatInt(c.Omitted, 10))
	}
	if c.OmittedAt != 0 {
		facts = append(facts, "at="+strconv.Itoa(c.OmittedAt))
	}
	switch {
	case c.SpillError != "":
		facts = append(facts, "spill=failed")
	case c.SpillPath != "":
		facts = append(facts, "spill="+wholeOrBroken(c))
	}
	facts = append(facts, quote(string(c.Bytes)))
	p.say("%s", strings.Join(facts, " "))
}

// wholeOrBroken looks at a spill file.
func wholeOrBroken(c *dsh.Captured) string {
	info, err := os.Stat(c.SpillPath)
	if err == nil && info.Size() == c.Total && info.Mode() == 0o600 {
		return "whole"
	}
	return "broken"
}

func (p *play) scrubbed(names []string) {
	var ours []string
	for _, name := range names {
		if strings.HasPrefix(name, "SCENARIO_") {
			ours = append(ours, name)
		}
	}
	if len(ours) > 0 {
		slices.Sort(ours)
		p.say("scrubbed %s", strings.Join(ours, " "))
	}
}

func (p *play) chunk(c *dsh.Chunk) {
	if c.StdoutMissing != 0 || c.StderrMissing != 0 {
		p.say("missing %d %d", c.StdoutMissing, c.StderrMissing)
	}
	if c.StdoutSpill != "" {
		p.say("spill out")
	}
	if c.StderrSpill != "" {
		p.say("spill err")
	}
	if c.End {
		p.say("end")
	}
	p.say("text %s", quote(string(c.Bytes)))
}

func (p *play) reading(r *dsh.Reading, buffer []byte) {
	missing := ""
	if r.Missing != 0 {
		missing = " missing " + strconv.FormatInt(r.Missing, 10)
	}
	p.say("start %d next %d%s", r.Start, r.Next, missing)
	if r.End {
		p.say("end")
	}
	p.say("text %s", quote(string(buffer[:r.Len])))
}

func (p *play) spec(s *dsh.Spec) {
	p.say("command %s", quote(s.Script[:min(len(s.Script), 60)]))
	p.say("workdir %s", quote(s.Dir))
	p.say("timeout %d", inMillis(s.Timeout))
	p.say("stdout max %d", s.MaxStdout)
	p.say("max output %d", s.MaxOutput)
	p.say("grace %d", inMillis(s.Grace))
	p.say("drain %d", inMillis(s.Drain))
	p.say("survivors %v", s.Survivors)
	if s.SandboxMode != dsh.ModeDefault {
		p.say("sandbox %v", s.SandboxMode)
	}
	if s.MergeStderr {
		p.say("merge_stderr")
	}
	if s.Tag != 0 {
		p.say("tag %d", s.Tag)
	}
	p.scrubbed(s.Scrubbed)
}
