package dsh

// #include "shim.h"
import "C"

import (
	"runtime"
	"time"
	"unsafe"
)

// Spec is a command with every default and cap applied.
type Spec struct {
	// Script is the text for the shell's -c.
	Script string
	// Shell is the absolute path of the shell.
	Shell string
	// Dir is the absolute working directory.
	Dir string
	// Scrubbed are names of host variables that the command does not get because they look like credentials or are denied.
	Scrubbed []string
	// Timeout is the one of a run.
	Timeout time.Duration
	// MaxStdout is how many bytes of stdout a run keeps in memory.
	MaxStdout int64
	// MaxOutput is how many bytes of stderr, and of the stdout of a command in the background, are kept in memory.
	MaxOutput int64
	// Grace is the time from SIGTERM to SIGKILL.
	Grace time.Duration
	// Drain is how long open pipes are waited for after the shell has exited.
	Drain time.Duration
	// MergeStderr: stderr goes through stdout's pipe.
	MergeStderr bool
	// Survivors says what happens to descendants that outlive the command.
	Survivors SurvivorPolicy
	// SandboxMode is the mode that it would be confined under; ModeDefault when nobody has asked for confinement.
	SandboxMode SandboxMode
	// Tag is the command's.
	Tag uint64
}

// Resolve tells what would run, and starts nothing. Its errors are those that [Executor.Run] gives for its command;
// whether the working directory can be entered is found out only by running.
func (ex *Executor) Resolve(command Command) (*Spec, error) {
	order, err := command.order()
	if err != nil {
		return nil, err
	}
	order.terms.tag = C.uint64_t(command.Tag)
	defer runtime.KeepAlive(ex)
	handle, err := ex.core.enter()
	if err != nil {
		return nil, err
	}
	defer ex.core.exit()
	var (
		spec *C.dsh_spec_t
		info C.dsh_spec_info_t
		cerr *C.dsh_error_t
	)
	status := C.dshgo_resolve(handle, &order.terms, order.policy, order.script, order.texts.pointer(), &spec, &info,
		&cerr)
	if status != C.DSH_OK {
		return nil, failure(status, cerr)
	}
	defer C.dsh_spec_free(spec)
	return &Spec{
		Script:      string(goBytes(unsafe.Pointer(info.command), info.command_len)),
		Shell:       C.GoString(info.shell),
		Dir:         C.GoString(info.workdir),
		Scrubbed:    goStrings(info.scrubbed, info.scrubbed_len),
		Timeout:     duration(uint64(info.timeout_ms)),
		MaxStdout:   signed(uint64(info.stdout_max_bytes)),
		MaxOutput:   signed(uint64(info.max_output_bytes)),
		Grace:       duration(uint64(info.grace_ms)),
		Drain:       duration(uint64(info.drain_ms)),
		MergeStderr: info.flags&C.DSH_REQUEST_MERGE_STDERR != 0,
		Survivors:   SurvivorPolicy(info.survivors),
		SandboxMode: SandboxMode(info.sandbox_mode),
		Tag:         uint64(info.tag),
	}, nil
}
