package dsh

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"unsafe"
)

// Process is a command in the background: the shell and all its descendants. Its methods may be called by any number of
// goroutines at a time.
type Process struct {
	// ex keeps the executor, which ends its commands when it is forgotten.
	ex      *Executor
	job     *job
	cleanup runtime.Cleanup

	// What Read has taken and not given yet.
	readMu  sync.Mutex
	pending []byte
	lost    *LostError
}

// Start starts a command in the background and returns at once. No timeout applies. The process is the executor's until
// nothing of it is alive, whether or not the handle is kept.
//
// Errors as of [Executor.Run].
func (ex *Executor) Start(command Command) (*Process, error) {
	return ex.StartContext(context.Background(), command)
}

// StartContext is Start for a command that is ended when the context is done, as [Process.Kill] would, but with StopCancel
// as its Cause. It stays bound to the context until it has settled, also when its handle is closed or forgotten.
func (ex *Executor) StartContext(ctx context.Context, command Command) (*Process, error) {
	defer runtime.KeepAlive(ex)
	j, err := ex.core.start(ctx, &command, 0)
	if err != nil {
		return nil, err
	}
	p := &Process{ex: ex, job: j}
	p.cleanup = runtime.AddCleanup(p, (*job).leave, j)
	return p, nil
}

// Done is closed when the process has settled: its exit is known, and its output is complete or the executor's Drain has
// passed. It is also closed when the executor is closed and could not end it.
//
// The channel may be kept without the process, but not without the executor.
func (p *Process) Done() <-chan struct{} {
	return p.job.settled
}

// Quiescent is closed when nothing of the process's tree is alive any more, after Done.
func (p *Process) Quiescent() <-chan struct{} {
	return p.job.quiescent
}

// Wait waits until the process has settled and tells how it ended. The context bounds the waiting only: when it is done
// first, Wait gives its error, and the process goes on.
func (p *Process) Wait(ctx context.Context) (*ProcessState, error) {
	select {
	case <-p.job.settled:
		return p.State()
	default:
	}
	select {
	case <-p.job.settled:
		return p.State()
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
}

// Kill ends the whole tree: SIGTERM and SIGCONT, and after the executor's Grace SIGKILL to what is still alive,
// descendants that left their session included. What a command that has ended left behind is ended too. It does not wait.
//
// It reports whether there was still a command to be killed: true once, and never after the command's own end.
func (p *Process) Kill() (wasRunning bool, err error) {
	defer runtime.KeepAlive(p)
	handle, err := p.job.enter()
	if err != nil {
		return false, err
	}
	defer p.job.exit()
	var (
		running C.uint32_t
		cerr    *C.dsh_error_t
	)
	if status := C.dsh_kill(handle, &running, &cerr); status != C.DSH_OK {
		return false, failure(status, cerr)
	}
	return running != 0, nil
}

// Close gives the handle up. The process goes on, owned by the executor; Done and Quiescent go on telling of it, other
// methods give [ErrClosed], and so do readers that wait. A call after the first does nothing. The error is always nil.
func (p *Process) Close() error {
	p.cleanup.Stop()
	p.job.leave()
	return nil
}

// Status says what has become of a process in the background.
type Status uint32

const (
	// StatusRunning: it has not settled yet.
	StatusRunning Status = C.DSH_PROCESS_RUNNING
	// StatusCompleted: it ended by itself, with whatever code.
	StatusCompleted Status = C.DSH_PROCESS_COMPLETED
	// StatusKilled: it was killed or cancelled, or died of a signal.
	StatusKilled Status = C.DSH_PROCESS_KILLED
)

// String gives "running", "completed" or "killed".
func (s Status) String() string {
	return nameOf(s, "0", "running", "completed", "killed")
}

// ProcessState is what is known of a process at one moment.
type ProcessState struct {
	// Outcome is how it ended, with ExitNone while the shell's end is not known.
	Outcome

	// Status is what has become of it.
	Status Status
	// Quiescent: nothing of the tree is alive any more.
	Quiescent bool
	// PID is the shell's. Its number may belong to somebody else once the process has settled.
	PID int
	// ProcessID is the library's number of the process, unique in its executor.
	ProcessID uint64
	// Tag is the command's.
	Tag uint64
	// StdoutTotal is how many bytes of stdout (both streams, when they are merged) were seen so far.
	StdoutTotal int64
	// StderrTotal is how many bytes of stderr were.
	StderrTotal int64
	// InputWritten is how many bytes of input the command took, or were left in the pipe for it.
	InputWritten int64
	// HeldBy are the pids that held the output pipes when the drain limit passed, as far as they could be seen.
	HeldBy []int
	// Survivors are descendants that are still alive after the command's end.
	Survivors []Survivor
	// Sandbox is what is known of its confinement; nil when nobody has asked for one. Final once it has settled.
	Sandbox *SandboxFacts
}

// State tells what is known now.
func (p *Process) State() (*ProcessState, error) {
	defer runtime.KeepAlive(p)
	handle, err := p.job.enter()
	if err != nil {
		return nil, err
	}
	defer p.job.exit()
	info := C.dsh_process_info_t{size: C.sizeof_dsh_process_info_t}
	var cerr *C.dsh_error_t
	if status := C.dsh_process_info(handle, &info, &cerr); status != C.DSH_OK {
		return nil, failure(status, cerr)
	}
	facts := C.dsh_sandbox_facts_t{size: C.sizeof_dsh_sandbox_facts_t}
	if status := C.dsh_process_sandbox(handle, &facts, &cerr); status != C.DSH_OK {
		return nil, failure(status, cerr)
	}
	state := &ProcessState{
		Outcome:      outcome(&info.outcome),
		Status:       Status(info.status),
		Quiescent:    info.quiescent != 0,
		PID:          int(info.pid),
		ProcessID:    uint64(info.process_id),
		Tag:          p.job.tag,
		StdoutTotal:  signed(uint64(info.out_total)),
		StderrTotal:  signed(uint64(info.err_total)),
		InputWritten: signed(uint64(info.input_written)),
		Sandbox:      sandboxFacts(&facts),
	}
	if info.held_by_len > 0 {
		held, err := filled(func(buffer *C.int32_t, capacity C.size_t, count *C.size_t, cerr **C.dsh_error_t) C.dsh_status_t {
			return C.dsh_process_held_by(handle, buffer, capacity, count, cerr)
		})
		if err != nil {
			return nil, err
		}
		state.HeldBy = pids(held)
	}
	if info.survivors_len > 0 {
		alive, err := filled(func(buffer *C.dsh_survivor_t, capacity C.size_t, count *C.size_t, cerr **C.dsh_error_t) C.dsh_status_t {
			return C.dsh_process_survivors(handle, buffer, capacity, count, cerr)
		})
		if err != nil {
			return nil, err
		}
		state.Survivors = survivors(alive)
	}
	return state, nil
}

// filled gets a list that the library fills into a buffer, whatever its length.
func filled[T any](fill func(buffer *T, capacity C.size_t, count *C.size_t, cerr **C.dsh_error_t) C.dsh_status_t) ([]T, error) {
	buffer := make([]T, 32)
	for {
		var (
			count C.size_t
			cerr  *C.dsh_error_t
		)
		status := fill(unsafe.SliceData(buffer), C.size_t(len(buffer)), &count, &cerr)
		if status != C.DSH_OK {
			return nil, failure(status, cerr)
		}
		if int(count) <= len(buffer) {
			return buffer[:count], nil
		}
		buffer = make([]T, count)
	}
}
