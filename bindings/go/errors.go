package dsh

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Code says what kind of failure an [Error] is. Codes are errors themselves, to be asked for with errors.Is:
//
//	if errors.Is(err, dsh.ErrWorkdirMissing) {
type Code int32

// The codes. Their numbers are those of the C library and never change.
const (
	// ErrNull: a required pointer was missing. Not seen through this package.
	ErrNull Code = C.DSH_E_NULL
	// ErrInvalid: a value that can't be used; the message names the field and the value.
	ErrInvalid Code = C.DSH_E_INVALID
	// ErrStruct: the library that was loaded is older than the header of the build and does not know what was asked for.
	ErrStruct Code = C.DSH_E_STRUCT
	// ErrFlags: the same, of a flag.
	ErrFlags Code = C.DSH_E_FLAGS
	// ErrCommandNUL: the command holds a NUL byte, which no command line can carry.
	ErrCommandNUL Code = C.DSH_E_COMMAND_NUL
	// ErrEnvName: the name of an environment variable can't be one.
	ErrEnvName Code = C.DSH_E_ENV_NAME
	// ErrEnvReserved: the name of an environment variable is in the reserved DSH_ namespace.
	ErrEnvReserved Code = C.DSH_E_ENV_RESERVED
	// ErrEnvTooBig: the environment is larger than the system takes; the message names the largest variables.
	ErrEnvTooBig Code = C.DSH_E_ENV_TOO_BIG
	// ErrWorkdirMissing: the working directory does not exist.
	ErrWorkdirMissing Code = C.DSH_E_WORKDIR_MISSING
	// ErrWorkdirNotDir: the working directory is something else than a directory.
	ErrWorkdirNotDir Code = C.DSH_E_WORKDIR_NOT_DIR
	// ErrWorkdirDenied: the working directory may not be entered.
	ErrWorkdirDenied Code = C.DSH_E_WORKDIR_DENIED
	// ErrWorkdirUnusable: the working directory can't be used for another reason (a loop of links, a name too long).
	ErrWorkdirUnusable Code = C.DSH_E_WORKDIR_UNUSABLE
	// ErrShellMissing: the shell is not there or can't be executed.
	ErrShellMissing Code = C.DSH_E_SHELL_MISSING
	// ErrCancelled: the context was done before the command was started.
	ErrCancelled Code = C.DSH_E_CANCELLED
	// ErrShutdown: the executor has been shut down or closed.
	ErrShutdown Code = C.DSH_E_SHUTDOWN
	// ErrSpawn: the system refused to start the command; stage and errno say where and why.
	ErrSpawn Code = C.DSH_E_SPAWN
	// ErrSandboxUnavailable: no backend can enforce the command's policy here, so it was not run; the message says of each
	// why not. Or the backend failed to set itself up.
	ErrSandboxUnavailable Code = C.DSH_E_SANDBOX_UNAVAILABLE
	// ErrTimedOut: a shutdown has not ended everything in its time. A command that timed out is a result, no error.
	ErrTimedOut Code = C.DSH_E_TIMED_OUT
	// ErrSystem: a system call that the library needs failed; stage and errno say which and why.
	ErrSystem Code = C.DSH_E_SYSTEM
	// ErrOutOfMemory: memory was refused.
	ErrOutOfMemory Code = C.DSH_E_OUT_OF_MEMORY
	// ErrForked: the call was made in a forked child of the process that made the handle.
	ErrForked Code = C.DSH_E_FORKED
	// ErrPanic: the library caught a failure of its own; what it was called on can only be closed.
	ErrPanic Code = C.DSH_E_PANIC
)

// Error says in a few words what the code means.
func (c Code) Error() string {
	return C.GoString(C.dsh_status_str(C.dsh_status_t(c)))
}

// Error is what went wrong in one call: never a command's own failure, which is a result.
//
// errors.Is finds its [Code], its errno, and the context's error when the context was the reason.
type Error struct {
	// Code is the kind of failure.
	Code Code
	// Errno is the error number of the system call that failed; 0 when none did.
	Errno syscall.Errno
	// Stage says where it went wrong, a lower-case word that stays the same between versions: "argument", "resolve",
	// "environment", "workdir", "shell", "pipe", "script", "clone", "session", "signals", "descriptors", "exec",
	// "guard", "threads", "poll", "wait", "spill" or "sandbox".
	Stage string
	// Message names the field and its value, or the step and the system's reason. For people; its wording may change.
	Message string

	cause error
}

// Error gives the message.
func (e *Error) Error() string {
	if e.cause != nil {
		return "dsh: " + e.Message + ": " + e.cause.Error()
	}
	return "dsh: " + e.Message
}

// Unwrap gives the code, the errno when there is one, and the context's error when that was the reason.
func (e *Error) Unwrap() []error {
	errs := []error{e.Code}
	if e.Errno != 0 {
		errs = append(errs, e.Errno)
	}
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	return errs
}

// ErrClosed is what the methods of a [Process] give after its Close.
var ErrClosed = errors.New("dsh: the process handle is closed")

// A LostError is what a reader gives when output that it has not read yet has slid out of memory and can't be had from a
// spill file either. It comes once for each gap; the next read goes on behind it.
type LostError struct {
	// Bytes is how many are missing.
	Bytes int64
}

// Error says how much is missing.
func (e *LostError) Error() string {
	return fmt.Sprintf("dsh: %d bytes of output are lost", e.Bytes)
}

// failure makes the error of a call, and frees what C gave.
func failure(status C.dsh_status_t, cerr *C.dsh_error_t) *Error {
	code := Code(status)
	if cerr == nil {
		return &Error{Code: code, Stage: "argument", Message: code.Error()}
	}
	defer C.dsh_error_free(cerr)
	return &Error{
		Code:    code,
		Errno:   syscall.Errno(C.dsh_error_errno(cerr)),
		Stage:   C.GoString(C.dsh_error_stage(cerr)),
		Message: C.GoString(C.dsh_error_message(cerr)),
	}
}

func invalid(format string, args ...any) *Error {
	return &Error{Code: ErrInvalid, Stage: "argument", Message: fmt.Sprintf(format, args...)}
}

// shutDown is the error of an executor that is closed, as the library words it for one that is shut down.
func shutDown() *Error {
	return &Error{Code: ErrShutdown, Stage: "resolve", Message: "executor: it has been shut down"}
}

// contextError is why a context is done, in both of the ways in which that may be asked.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
