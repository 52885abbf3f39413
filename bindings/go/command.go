package dsh

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// SurvivorPolicy says what happens to descendants that are still alive when a command has ended by itself.
type SurvivorPolicy uint32

const (
	// KeepSurvivors: they stay, owned by the executor: listed in the result, their pipes drained, ended with the
	// executor. The default.
	KeepSurvivors SurvivorPolicy = C.DSH_SURVIVORS_KEEP
	// KillSurvivors: they are ended before the result is there.
	KillSurvivors SurvivorPolicy = C.DSH_SURVIVORS_KILL
)

// String gives "keep" or "kill".
func (p SurvivorPolicy) String() string {
	return nameOf(p, "keep", "kill")
}

// Command is what a shell is to run, and the terms. Zero values mean the executor's default.
type Command struct {
	// Script is the command: the text for "bash -c", any bytes but NUL, of any length.
	Script string
	// Dir is the working directory; a relative one is taken from the executor's.
	Dir string
	// Input is what the command reads from its stdin, which is closed after it. Nil gives it /dev/null, an empty slice
	// an empty pipe.
	Input []byte
	// Env are entries over the host's environment: "NAME=VALUE" sets, "NAME" alone removes. Names in DSH_ are refused.
	Env []string
	// DSHEnv are trusted entries in the DSH_ namespace: "DSH_NAME=VALUE" only.
	DSHEnv []string
	// Timeout ends a run, capped by the executor's MaxTimeout. A command in the background has none.
	Timeout time.Duration
	// MaxStdout is how many bytes of a run's stdout are kept in memory. A command in the background has the executor's
	// MaxOutput.
	MaxStdout int64
	// MergeStderr sends stderr through stdout's pipe, so that both are kept in their order of arrival. Without it, the
	// order between the two is not known.
	MergeStderr bool
	// Survivors says what happens to descendants that outlive the command.
	Survivors SurvivorPolicy
	// Sandbox is the policy to confine the command under, where it differs from the executor's.
	Sandbox *SandboxPolicy
	// Tag is any number of the caller's; it comes back in [ProcessState].
	Tag uint64
}

// order is a command as the shim takes it. What it points to is the command's.
type order struct {
	terms  C.dsh_request_t
	policy *C.dshgo_policy_t
	script *C.char
	input  unsafe.Pointer
	texts  packed
}

// noTexts is the texts of a command that names no directory, environment or policy.
var noTexts = packed{0}

func (c *Command) order() (order, error) {
	o := order{
		terms: C.dsh_request_t{
			size:        C.sizeof_dsh_request_t,
			command_len: C.size_t(len(c.Script)),
			input_len:   C.size_t(len(c.Input)),
			env_len:     C.size_t(len(c.Env)),
			dsh_env_len: C.size_t(len(c.DSHEnv)),
			flags:       flag(c.MergeStderr, C.DSH_REQUEST_MERGE_STDERR),
			survivors:   C.dsh_survivors_t(c.Survivors),
		},
		// As pointers to bytes, so that cgo need not look at what else is in the memory that they are part of.
		script: (*C.char)(unsafe.Pointer(unsafe.StringData(c.Script))),
		input:  unsafe.Pointer(unsafe.SliceData(c.Input)),
		texts:  noTexts,
	}
	var p packer
	o.terms.timeout_ms = p.millis("timeout", c.Timeout)
	o.terms.stdout_max_bytes = p.bytes("max_stdout", c.MaxStdout)
	if c.Dir != "" || len(c.Env) > 0 || len(c.DSHEnv) > 0 || c.Sandbox != nil {
		p.text("dir", c.Dir)
		p.list("env", c.Env)
		p.list("dsh_env", c.DSHEnv)
		o.policy = p.sandbox(c.Sandbox)
		o.texts = p.texts
	}
	return o, p.err
}
