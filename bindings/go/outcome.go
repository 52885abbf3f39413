package dsh

// #include "shim.h"
import "C"

import (
	"syscall"
	"time"
)

// Exit says how the shell ended: by a code or by a signal, never both, never one made up from the other.
type Exit uint32

const (
	// ExitNone: it has not ended yet.
	ExitNone Exit = C.DSH_EXIT_NONE
	// ExitCode: it exited with a code.
	ExitCode Exit = C.DSH_EXIT_CODE
	// ExitSignal: a signal ended it.
	ExitSignal Exit = C.DSH_EXIT_SIGNAL
	// ExitUnknown: it has ended, but the host took its status away (by ignoring SIGCHLD or reaping strangers) on a system
	// that can't tell it again.
	ExitUnknown Exit = C.DSH_EXIT_UNKNOWN
)

// String gives "none", "code", "signal" or "unknown".
func (e Exit) String() string {
	return nameOf(e, "none", "code", "signal", "unknown")
}

// StopCause says who stopped a command.
type StopCause uint32

const (
	// StopNone: nobody.
	StopNone StopCause = C.DSH_STOP_NONE
	// StopTimeout: its timeout passed.
	StopTimeout StopCause = C.DSH_STOP_TIMEOUT
	// StopCancel: its context was done.
	StopCancel StopCause = C.DSH_STOP_CANCEL
	// StopKill: it was killed through its handle.
	StopKill StopCause = C.DSH_STOP_KILL
	// StopShutdown: the executor was shut down.
	StopShutdown StopCause = C.DSH_STOP_SHUTDOWN
	// StopSurvivors: it had ended by itself, and its policy was to end what it left behind.
	StopSurvivors StopCause = C.DSH_STOP_SURVIVORS
)

// String gives "none", "timeout", "cancel", "kill", "shutdown" or "survivors".
func (c StopCause) String() string {
	return nameOf(c, "none", "timeout", "cancel", "kill", "shutdown", "survivors")
}

// StopStage says how far a forced stop had to go.
type StopStage uint32

const (
	// StageNone: nothing was signalled.
	StageNone StopStage = C.DSH_STOP_STAGE_NONE
	// StageTerm: SIGTERM (and SIGCONT) was enough.
	StageTerm StopStage = C.DSH_STOP_STAGE_TERM
	// StageKill: SIGKILL was sent to something that was still alive after the grace.
	StageKill StopStage = C.DSH_STOP_STAGE_KILL
)

// String gives "none", "term" or "kill".
func (s StopStage) String() string {
	return nameOf(s, "none", "term", "kill")
}

// Outcome is how a command ended.
type Outcome struct {
	// Exit says how the shell ended.
	Exit Exit
	// Code is the exit code, 0 to 255, with ExitCode; otherwise -1.
	Code int
	// Signal is the signal, with ExitSignal; otherwise 0.
	Signal syscall.Signal
	// CoreDumped: that signal had memory dumped.
	CoreDumped bool
	// TimedOut: the command's timeout was the first cause to cut it short, whatever it then exited with.
	TimedOut bool
	// Aborted: a cancellation (of the context, by its deadline too), kill or shutdown was. Never with TimedOut.
	Aborted bool
	// Cause is the first cause that cut it short while it ran; StopNone when it ended by itself.
	Cause StopCause
	// StoppedBy is who first ordered a stop, also of what was left behind after the command's own end.
	StoppedBy StopCause
	// Stage is how far that stop had to go.
	Stage StopStage
	// PipesHeld: something still held the output pipes when the drain limit had passed.
	PipesHeld bool
	// Wall is the time from the start until the shell's end.
	Wall time.Duration
	// User and System are CPU times, of the shell and the descendants that it waited for.
	User, System time.Duration
	// MaxRSS is the peak resident memory in bytes of the largest of them.
	MaxRSS int64
}

// Success reports whether the command exited with code 0.
func (o Outcome) Success() bool {
	return o.Exit == ExitCode && o.Code == 0
}

// Survivor is a process that is still alive.
type Survivor struct {
	// PID is its number.
	PID int
	// StartTime is when it started, in clock ticks since boot: with it, the number can't be mistaken for a later process.
	StartTime uint64
}

func outcome(o *C.dsh_outcome_t) Outcome {
	micros := func(us C.uint64_t) time.Duration { return time.Duration(us) * time.Microsecond }
	return Outcome{
		Exit:       Exit(o.exit),
		Code:       int(o.code),
		Signal:     syscall.Signal(o.signal),
		CoreDumped: o.core_dumped != 0,
		TimedOut:   o.timed_out != 0,
		Aborted:    o.aborted != 0,
		Cause:      StopCause(o.cause),
		StoppedBy:  StopCause(o.stopped_by),
		Stage:      StopStage(o.stage),
		PipesHeld:  o.pipes_held != 0,
		Wall:       micros(o.wall_us),
		User:       micros(o.user_us),
		System:     micros(o.system_us),
		MaxRSS:     signed(uint64(o.max_rss_bytes)),
	}
}

func survivors(list []C.dsh_survivor_t) []Survivor {
	var all []Survivor
	for _, s := range list {
		all = append(all, Survivor{PID: int(s.pid), StartTime: uint64(s.start_time)})
	}
	return all
}

func pids(list []C.int32_t) []int {
	var all []int
	for _, pid := range list {
		all = append(all, int(pid))
	}
	return all
}
