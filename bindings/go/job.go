package dsh

// #cgo noescape dshgo_result
// #cgo nocallback dshgo_result
// #cgo noescape dshgo_free
// #cgo nocallback dshgo_free
// #include "shim.h"
import "C"

import (
	"context"
	"sync"
	"sync/atomic"
)

// handles is how many handles of commands are held. For tests, which look for leaks.
var handles atomic.Int64

// job is one command as the event loop knows it: the handles of C, and what tells of its end.
//
// The handles are freed once the job's user has left it and nothing of it is alive. Freed earlier, the command would go on
// unheard, and those who wait for its end or have bound it to a context would wait in vain.
type job struct {
	loop *loop
	// key is the tag that the library knows it by; tag is the user's.
	key, tag uint64

	// mu is held for reading during calls on the handles, and for writing to set and free them.
	mu      sync.RWMutex
	process *C.dsh_process_t
	cancel  *C.dsh_cancel_t
	unbind  func() bool // parts it from its context; nil when that is never done
	left    bool        // by its user
	// attended: it had settled when the call that started it returned, and the event loop will not tell of that.
	attended bool
	over     bool // nothing of it is alive, or nothing more will be heard of it

	// settled and quiescent are closed by the event loop.
	settled   chan struct{}
	quiescent chan struct{}

	newsMu sync.Mutex
	// news is closed when there is new output. There is none while nobody waits.
	news chan struct{}
	// silence is why no news will come any more. Once it is set, settled is closed, and it stays.
	silence error
}

func newJob(loop *loop, key, tag uint64) *job {
	return &job{loop: loop, key: key, tag: tag, settled: make(chan struct{}), quiescent: make(chan struct{})}
}

// bind makes the cancel token for a context that can be done, and has it thrown then.
func (j *job) bind(ctx context.Context) error {
	if ctx.Done() == nil {
		return nil
	}
	var (
		cancel *C.dsh_cancel_t
		cerr   *C.dsh_error_t
	)
	if status := C.dsh_cancel_new(&cancel, &cerr); status != C.DSH_OK {
		return failure(status, cerr)
	}
	if ctx.Err() != nil {
		C.dsh_cancel(cancel, nil) // by the time of the start
	}
	j.mu.Lock()
	j.cancel = cancel
	j.unbind = context.AfterFunc(ctx, j.stop)
	j.mu.Unlock()
	return nil
}

// hold takes the process over. Events may have come before.
func (j *job) hold(process *C.dsh_process_t, attended bool) {
	handles.Add(1)
	j.mu.Lock()
	j.process, j.attended = process, attended
	j.mu.Unlock()
}

// drop is for a job whose process could not be started.
func (j *job) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.unbind != nil {
		j.unbind()
	}
	C.dshgo_free(nil, nil, j.cancel)
	j.cancel = nil
	j.loop.dismiss(j)
}

// enter begins a call on the handle, which exit ends.
func (j *job) enter() (*C.dsh_process_t, error) {
	j.mu.RLock()
	if j.left {
		j.mu.RUnlock()
		return nil, ErrClosed
	}
	return j.process, nil
}

func (j *job) exit() {
	j.mu.RUnlock()
}

// stop throws the job's cancel token.
func (j *job) stop() {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.cancel != nil {
		C.dsh_cancel(j.cancel, nil)
	}
}

// leave is called when the user is done with it.
func (j *job) leave() {
	j.mu.Lock()
	j.left = true
	if j.over {
		j.free(nil)
	}
	j.mu.Unlock()
	j.tellNews() // readers that wait learn that they wait in vain
}

// free frees the handles, and the result that was got from them, if any. mu is held for writing.
func (j *job) free(result *C.dsh_result_t) {
	if j.process == nil {
		return
	}
	C.dshgo_free(result, j.process, j.cancel)
	j.process, j.cancel = nil, nil
	j.loop.dismiss(j)
	handles.Add(-1)
}

// finish gives what a run gave, and frees the handles: whatever it left behind is the executor's.
func (j *job) finish() (*Result, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = true
	if j.unbind != nil {
		j.unbind()
	}
	var (
		handle *C.dsh_result_t
		info   C.dsh_result_info_t
		facts  C.dsh_sandbox_facts_t
		cerr   *C.dsh_error_t
	)
	defer func() { j.free(handle) }()
	if status := C.dshgo_result(j.process, &handle, &info, &facts, &cerr); status != C.DSH_OK {
		failure := failure(status, cerr)
		if failure.Code == ErrTimedOut {
			return nil, j.silence // it has not settled: there is nobody any more to tell when it does
		}
		return nil, failure
	}
	return result(&info, &facts), nil
}

// settle is called by the event loop when exit and output are final. Readers look once more: when the library has lost
// the thread that drives a command, that is the last which is heard of it, and looking tells them so.
func (j *job) settle() {
	close(j.settled)
	j.tellNews()
	j.mu.RLock()
	unbind := j.unbind
	j.mu.RUnlock()
	if unbind != nil {
		unbind()
	}
}

// end is called by the event loop, after settle, when nothing of it is alive. Output may come all the same, from strangers
// that hold its pipes.
func (j *job) end() {
	j.mu.Lock()
	j.over = true
	if j.left {
		j.free(nil)
	}
	j.mu.Unlock()
	close(j.quiescent)
}

// silent is called by the event loop when it hears nothing more.
func (j *job) silent(reason error) {
	j.newsMu.Lock()
	j.silence = reason
	j.newsMu.Unlock()
	select {
	case <-j.settled:
	default:
		j.settle()
	}
	select {
	case <-j.quiescent:
	default:
		j.end()
	}
	j.tellNews()
}

// nextNews gives what is closed at the next new output. The error is why there will be none.
func (j *job) nextNews() (<-chan struct{}, error) {
	j.newsMu.Lock()
	defer j.newsMu.Unlock()
	if j.silence != nil {
		return nil, j.silence
	}
	if j.news == nil {
		j.news = make(chan struct{})
	}
	return j.news, nil
}

// await repeats a read that does not wait until it gives something.
func (j *job) await(read func() (int, error)) (int, error) {
	for {
		if n, err := read(); n > 0 || err != nil {
			return n, err
		}
		news, silence := j.nextNews()
		// Once more, for what has come before there was something to wait for.
		if n, err := read(); n > 0 || err != nil {
			return n, err
		}
		if silence != nil {
			return 0, silence
		}
		<-news
	}
}

// tellNews wakes the readers that wait.
func (j *job) tellNews() {
	j.newsMu.Lock()
	defer j.newsMu.Unlock()
	if j.news != nil {
		close(j.news)
		j.news = nil
	}
}
