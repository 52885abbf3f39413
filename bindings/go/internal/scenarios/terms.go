package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"libdsh.org/dsh"
)

// request is a command and whether the case's context is to be its own.
type request struct {
	command  dsh.Command
	hasInput bool
	cancel   bool
}

// set sets one term.
func (r *request) set(key, value string) (err error) {
	c := &r.command
	if term, of := strings.CutPrefix(key, "sandbox."); of {
		return confine(&c.Sandbox, term, value)
	}
	switch key {
	case "command":
		c.Script = value
	case "workdir":
		c.Dir = value
	case "timeout_ms":
		c.Timeout, err = millis(value)
	case "stdout_max_bytes":
		c.MaxStdout, err = size(value)
	case "tag":
		c.Tag, err = strconv.ParseUint(value, 10, 64)
	case "input":
		c.Input, r.hasInput = []byte(value), true
	case "env":
		c.Env = append(c.Env, value)
	case "dsh_env":
		c.DSHEnv = append(c.DSHEnv, value)
	case "merge_stderr":
		c.MergeStderr, err = onOff(value)
	case "survivors":
		c.Survivors, err = oneOf(value, dsh.KeepSurvivors, dsh.KillSurvivors)
	case "cancel":
		r.cancel, err = onOff(value)
	default:
		err = fmt.Errorf("unknown term %q", key)
	}
	return err
}

// confine sets one term of a policy.
func confine(policy **dsh.SandboxPolicy, key, value string) (err error) {
	if *policy == nil {
		*policy = new(dsh.SandboxPolicy)
	}
	s := *policy
	switch key {
	case "mode":
		s.Mode, err = oneOf(value, dsh.ModeReadOnly, dsh.ModeWorkspaceWrite, dsh.ModeDangerFullAccess)
	case "workspace":
		s.Workspace = value
	case "writable":
		s.Writable = append(s.Writable, value)
	case "hidden":
		s.Hidden = append(s.Hidden, value)
	case "network":
		s.Network, err = oneOf(value, dsh.NetworkNone, dsh.NetworkLoopback, dsh.NetworkFull)
	case "backend":
		var backend dsh.Backend
		backend, err = oneOf(value, dsh.BackendBubblewrap, dsh.BackendLandlock)
		s.Backends = append(s.Backends, backend)
	case "git_worktree":
		s.GitWorktree, err = oneOf(value, dsh.GitWorktreeOn, dsh.GitWorktreeOff)
	default:
		err = fmt.Errorf("unknown term %q", "sandbox."+key)
	}
	return err
}

// configure sets one budget.
func configure(c *dsh.Config, key, value string) (err error) {
	if term, of := strings.CutPrefix(key, "sandbox."); of {
		return confine(&c.Sandbox, term, value)
	}
	var on bool
	switch key {
	case "cwd":
		c.Dir = value
	case "shell":
		c.Shell = value
	case "spill_dir":
		c.SpillDir = value
	case "timeout_ms":
		c.Timeout, err = millis(value)
	case "max_timeout_ms":
		c.MaxTimeout, err = millis(value)
	case "max_output_bytes":
		c.MaxOutput, err = size(value)
	case "max_spill_bytes":
		c.MaxSpill, err = size(value)
	case "max_total_spill_bytes":
		c.MaxTotalSpill, err = size(value)
	case "grace_ms":
		c.Grace, err = millis(value)
	case "drain_ms":
		c.Drain, err = millis(value)
	case "keep":
		c.Keep, err = oneOf(value, dsh.KeepTail, dsh.KeepHeadTail)
	case "inherit_env":
		on, err = onOff(value)
		c.NoInheritEnv = !on
	case "guard":
		on, err = onOff(value)
		c.NoGuard = !on
	case "keep_spill_files":
		c.KeepSpillFiles, err = onOff(value)
	case "env_allow":
		c.EnvAllow = append(c.EnvAllow, value)
	case "env_deny":
		c.EnvDeny = append(c.EnvDeny, value)
	default:
		err = fmt.Errorf("unknown budget %q", key)
	}
	return err
}

// setting is the way back.
func setting(c *dsh.Config, key string) (any, error) {
	switch key {
	case "cwd":
		return c.Dir, nil
	case "shell":
		return c.Shell, nil
	case "spill_dir":
		return c.SpillDir, nil
	case "timeout_ms":
		return inMillis(c.Timeout), nil
	case "max_timeout_ms":
		return inMillis(c.MaxTimeout), nil
	case "max_output_bytes":
		return c.MaxOutput, nil
	case "max_spill_bytes":
		return c.MaxSpill, nil
	case "max_total_spill_bytes":
		return c.MaxTotalSpill, nil
	case "grace_ms":
		return inMillis(c.Grace), nil
	case "drain_ms":
		return inMillis(c.Drain), nil
	case "keep":
		return c.Keep, nil
	case "inherit_env":
		return spellOnOff(!c.NoInheritEnv), nil
	case "guard":
		return spellOnOff(!c.NoGuard), nil
	case "keep_spill_files":
		return spellOnOff(c.KeepSpillFiles), nil
	case "sandbox.mode":
		if c.Sandbox == nil {
			return "none", nil
		}
		return c.Sandbox.Mode, nil
	}
	return nil, fmt.Errorf("unknown budget %q", key)
}

// longest is the duration that stands for no limit.
const longest = time.Duration(math.MaxInt64)

func millis(value string) (time.Duration, error) {
	ms, err := strconv.ParseUint(value, 10, 64)
	if ms > uint64(longest/time.Millisecond) {
		return longest, err
	}
	return time.Duration(ms) * time.Millisecond, err
}

func inMillis(d time.Duration) uint64 {
	if d == longest {
		return math.MaxUint64
	}
	return uint64(d / time.Millisecond)
}

func size(value string) (int64, error) {
	bytes, err := strconv.ParseUint(value, 10, 64)
	return int64(min(bytes, math.MaxInt64)), err
}

func onOff(value string) (bool, error) {
	switch value {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, fmt.Errorf("neither on nor off: %q", value)
}

func spellOnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// oneOf is the constant of that name.
func oneOf[T fmt.Stringer](name string, all ...T) (T, error) {
	for _, constant := range all {
		if constant.String() == name {
			return constant, nil
		}
	}
	var none T
	return none, fmt.Errorf("unknown value %q", name)
}
