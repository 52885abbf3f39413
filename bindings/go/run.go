package dsh

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
)

// Run runs a command in a fresh, non-interactive "bash -c" and waits for its result.
//
// The result is there whenever the command was started, and nil otherwise. A non-zero exit, a signal, a timeout of the
// command's own, a shutdown: all that is in the result, and no error.
//
// When the context is done first, the whole tree is ended: SIGTERM, and SIGKILL to what is left after the executor's
// Grace. Run returns when that is through, with both: the result, which has the output so far, is Aborted and has
// StopCancel as its Cause; and the context's error, so that errors.Is(err, context.Canceled), or DeadlineExceeded, holds.
// A context that is done by the time of the call is the error [ErrCancelled], which is the context's error too, and no
// result.
//
// Errors of the command: [ErrInvalid], [ErrCommandNUL], [ErrEnvName], [ErrEnvReserved], [ErrEnvTooBig]. Of the place:
// [ErrWorkdirMissing], [ErrWorkdirNotDir], [ErrWorkdirDenied], [ErrWorkdirUnusable], [ErrShellMissing]. Of the system:
// [ErrSpawn], [ErrSystem], [ErrSandboxUnavailable]. Of the executor: [ErrShutdown].
func (ex *Executor) Run(ctx context.Context, command Command) (*Result, error) {
	defer runtime.KeepAlive(ex)
	j, err := ex.core.start(ctx, &command, C.DSH_REQUEST_FOREGROUND)
	if err != nil {
		return nil, err
	}
	if !j.attended {
		<-j.settled
	}
	result, err := j.finish()
	if err == nil && result.Cause == StopCancel {
		err = contextError(ctx)
	}
	return result, err
}
