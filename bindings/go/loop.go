package dsh

// #cgo noescape dshgo_events
// #cgo nocallback dshgo_events
// #include "shim.h"
import "C"

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// loop takes the events of an executor and tells the jobs that they are about.
//
// Its goroutine is parked in Go's network poller while no event waits, so it costs no thread. The poller tells of a
// change from "none waits" to "some wait", and keeps it in mind until it is waited for; so everything is taken before
// each wait, and nothing is missed.
type loop struct {
	executor *C.dsh_executor_t
	// file is a duplicate of the event descriptor. Nothing is ever read from it.
	file  *os.File
	ended chan struct{}
	// stopping is set before the file is closed.
	stopping atomic.Bool
	// batch is used by the goroutine, and by stop once that has ended.
	batch [128]C.dshgo_event_t

	mu      sync.Mutex
	jobs    map[uint64]*job
	lastKey uint64
	// failure is why no events come any more.
	failure error
}

func startLoop(executor *C.dsh_executor_t) (*loop, error) {
	var (
		fd, number C.int32_t
		cerr       *C.dsh_error_t
	)
	if status := C.dshgo_event_fd(executor, &fd, &number, &cerr); status != C.DSH_OK {
		if cerr != nil {
			return nil, failure(status, cerr)
		}
		return nil, eventError(syscall.Errno(number))
	}
	// The descriptor does not block, by which NewFile knows that it is one for the poller.
	file := os.NewFile(uintptr(fd), "dsh-events")
	conn, err := file.SyscallConn()
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails when the poller does not take it
	}
	if err != nil {
		file.Close()
		return nil, waitError(err)
	}
	l := &loop{executor: executor, file: file, ended: make(chan struct{}), jobs: make(map[uint64]*job)}
	go l.run(conn)
	return l, nil
}

func waitError(err error) *Error {
	return &Error{Code: ErrSystem, Stage: "poll", Message: "can't wait for events: " + err.Error()}
}

func eventError(errno syscall.Errno) *Error {
	message := "can't make the event descriptor: " + errno.Error()
	return &Error{Code: ErrSystem, Errno: errno, Stage: "poll", Message: message}
}

// run is the goroutine's whole life. It ends when the file is closed or no events can be had any more.
func (l *loop) run(conn syscall.RawConn) {
	defer close(l.ended)
	err := conn.Read(func(uintptr) bool { return !l.take() })
	if err != nil && !l.stopping.Load() {
		l.fail(waitError(err))
	}
}

// take takes all events that wait. It reports whether more may come.
func (l *loop) take() bool {
	for {
		var (
			count C.size_t
			cerr  *C.dsh_error_t
		)
		status := C.dshgo_events(l.executor, &l.batch[0], C.size_t(len(l.batch)), &count, &cerr)
		for _, event := range l.batch[:count] {
			l.tell(uint64(event.tag), event.kind)
		}
		if status != C.DSH_OK {
			l.fail(failure(status, cerr))
			return false
		}
		if int(count) < len(l.batch) {
			return true
		}
	}
}

// tell passes one event on. An event of a job that is not known any more is about one whose handles have been freed.
func (l *loop) tell(key uint64, kind C.uint32_t) {
	l.mu.Lock()
	j := l.jobs[key]
	l.mu.Unlock()
	if j == nil {
		return
	}
	switch kind {
	case C.DSH_EVENT_OUTPUT:
		j.tellNews()
	case C.DSH_EVENT_SETTLED:
		j.settle()
	case C.DSH_EVENT_QUIESCENT:
		j.end()
	}
}

// enlist makes a job that will be told of its events.
func (l *loop) enlist(tag uint64) (*job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return nil, l.failure
	}
	l.lastKey++
	j := newJob(l, l.lastKey, tag)
	l.jobs[j.key] = j
	return j, nil
}

// dismiss is for a job of which nobody wants to hear any more.
func (l *loop) dismiss(j *job) {
	l.mu.Lock()
	delete(l.jobs, j.key)
	l.mu.Unlock()
}

// stop ends the loop, and tells what has not been told yet: first the last events, then the silence.
func (l *loop) stop() {
	l.stopping.Store(true)
	l.file.Close()
	<-l.ended
	if l.take() {
		l.fail(shutDown())
	}
}

// fail tells all jobs that nothing more will be heard of them.
func (l *loop) fail(reason error) {
	l.mu.Lock()
	jobs := l.jobs
	l.jobs = nil
	l.failure = reason
	l.mu.Unlock()
	for _, j := range jobs {
		j.silent(reason)
	}
}
