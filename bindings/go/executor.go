package dsh

// #cgo noescape dshgo_start
// #cgo nocallback dshgo_start
// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Executor runs commands, and owns what it runs until nothing of it is alive. Its methods may be called by any number of
// goroutines at a time.
type Executor struct {
	core    *core
	cleanup runtime.Cleanup
}

// core is what an executor is apart from what its user holds, so that the garbage collector can tell when that is
// forgotten: the event loop keeps this alive.
type core struct {
	// mu is held for reading during calls on the handle, and for writing to free it.
	mu     sync.RWMutex
	handle *C.dsh_executor_t
	loop   *loop
	// turns bounds how many commands are being started at a time. A start keeps its thread for as long as the system
	// needs to create a process, and Go makes a thread for every other that is kept.
	turns chan struct{}
	// attending bounds how many runs the library attends to in the call that starts them.
	attending chan struct{}
	born      time.Time
	// gaveWay is when giveWay last did, in nanoseconds since then.
	gaveWay atomic.Int64

	closing  sync.Once
	closeErr error
}

// New makes an executor. Close it when its commands are not wanted any more.
//
// Errors: [ErrInvalid] and [ErrShellMissing], whose messages name the field, and [ErrSystem].
func New(options ...Option) (*Executor, error) {
	budgets, err := configOf(options).budgets()
	if err != nil {
		return nil, err
	}
	var (
		handle *C.dsh_executor_t
		cerr   *C.dsh_error_t
	)
	status := C.dshgo_configure(nil, &budgets.config, budgets.policy, budgets.texts.pointer(), &handle, &cerr)
	if status != C.DSH_OK {
		return nil, failure(status, cerr)
	}
	loop, err := startLoop(handle)
	if err != nil {
		C.dsh_executor_free(handle)
		return nil, err
	}
	ex := &Executor{core: &core{
		handle:    handle,
		loop:      loop,
		turns:     make(chan struct{}, runtime.GOMAXPROCS(0)),
		attending: make(chan struct{}, runtime.GOMAXPROCS(0)),
		born:      time.Now(),
	}}
	// Closing waits for commands to end, for which the goroutine of the cleanups must not be kept.
	ex.cleanup = runtime.AddCleanup(ex, func(c *core) { go c.close() }, ex.core)
	return ex, nil
}

// Configure replaces all budgets: those that the options do not name go back to their defaults. Commands that run keep
// theirs, the next one gets the new ones. Budgets that can't be used are refused, and the executor stays on its last good
// ones. To change only some, begin with the ones in force:
//
//	config, err := ex.Config()
//	...
//	err = ex.Configure(dsh.WithConfig(config), dsh.WithGrace(time.Second))
//
// Errors as of [New].
func (ex *Executor) Configure(options ...Option) error {
	budgets, err := configOf(options).budgets()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(ex)
	handle, err := ex.core.enter()
	if err != nil {
		return err
	}
	defer ex.core.exit()
	var cerr *C.dsh_error_t
	status := C.dshgo_configure(handle, &budgets.config, budgets.policy, budgets.texts.pointer(), nil, &cerr)
	if status != C.DSH_OK {
		return failure(status, cerr)
	}
	return nil
}

// Config gives the budgets in force, with every default filled in.
func (ex *Executor) Config() (Config, error) {
	defer runtime.KeepAlive(ex)
	handle, err := ex.core.enter()
	if err != nil {
		return Config{}, err
	}
	defer ex.core.exit()
	var (
		settings *C.dsh_settings_t
		cerr     *C.dsh_error_t
	)
	if status := C.dsh_executor_config(handle, &settings, &cerr); status != C.DSH_OK {
		return Config{}, failure(status, cerr)
	}
	defer C.dsh_settings_free(settings)
	c := C.dsh_config_t{size: C.sizeof_dsh_config_t}
	if status := C.dsh_settings_info(settings, &c, &cerr); status != C.DSH_OK {
		return Config{}, failure(status, cerr)
	}
	return config(&c), nil
}

// Shutdown ends every process tree that the executor owns, and waits until they are gone. No command is started any more
// ([ErrShutdown]); processes stay readable. Any number of calls.
//
// It waits until the context is done, and then gives the context's error while commands go on being ended; under a
// context without a deadline for the executor's Grace and one second at most, after which it gives [ErrTimedOut] and may
// be called again. It keeps one thread as long as it waits.
func (ex *Executor) Shutdown(ctx context.Context) error {
	limit := uint64(0)
	deadline, limited := ctx.Deadline()
	if limited {
		limit = uint64(max(time.Until(deadline), 0)/time.Millisecond) + 1
	}
	core := ex.core
	ended := make(chan error, 1)
	go func() { ended <- core.shutdown(limit) }()
	defer runtime.KeepAlive(ex)
	select {
	case err := <-ended:
		if limited && errors.Is(err, ErrTimedOut) {
			<-ctx.Done() // by now
			return contextError(ctx)
		}
		return err
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// Close shuts the executor down, as Shutdown without a deadline does, and frees it. Its processes stay readable. A call
// after the first waits for that and gives the same error; other methods give [ErrShutdown] afterwards.
func (ex *Executor) Close() error {
	ex.cleanup.Stop()
	return ex.core.close()
}

// SpawnPath says how children are created.
type SpawnPath uint32

const (
	// SpawnVFork: a clone that shares the host's memory until the shell is executed: the cost does not grow with the host.
	SpawnVFork SpawnPath = C.DSH_SPAWN_VFORK
	// SpawnFork: a plain fork, where memory is not really shared by a clone or pidfds are not there.
	SpawnFork SpawnPath = C.DSH_SPAWN_FORK
	// SpawnPortable: the spawn call of systems other than Linux.
	SpawnPortable SpawnPath = C.DSH_SPAWN_PORTABLE
)

// String gives "vfork", "fork" or "portable".
func (p SpawnPath) String() string {
	return nameOf(p, "0", "vfork", "fork", "portable")
}

// Stats is what an executor is doing at one moment.
type Stats struct {
	// Live is how many processes there are of which something may be alive.
	Live int
	// Ended is how many have come and gone.
	Ended int64
	// SpillBytes is how many bytes are in spill files.
	SpillBytes int64
	// Threads is how many threads of the library the executor runs: 2, and 0 after its shutdown.
	Threads int
	// SpawnPath is how children are created.
	SpawnPath SpawnPath
	// GuardPID is the pid of the guard; 0 while there is none.
	GuardPID int
}

// Stats tells what the executor is doing now.
func (ex *Executor) Stats() (Stats, error) {
	defer runtime.KeepAlive(ex)
	handle, err := ex.core.enter()
	if err != nil {
		return Stats{}, err
	}
	defer ex.core.exit()
	stats := C.dsh_stats_t{size: C.sizeof_dsh_stats_t}
	var cerr *C.dsh_error_t
	if status := C.dsh_executor_stats(handle, &stats, &cerr); status != C.DSH_OK {
		return Stats{}, failure(status, cerr)
	}
	return Stats{
		Live:       int(stats.live),
		Ended:      signed(uint64(stats.ended)),
		SpillBytes: signed(uint64(stats.spill_bytes)),
		Threads:    int(stats.threads),
		SpawnPath:  SpawnPath(stats.spawn_path),
		GuardPID:   int(stats.guard_pid),
	}, nil
}

// enter begins a call on the handle, which exit ends.
func (c *core) enter() (*C.dsh_executor_t, error) {
	c.mu.RLock()
	if c.handle == nil {
		c.mu.RUnlock()
		return nil, shutDown()
	}
	return c.handle, nil
}

func (c *core) exit() {
	c.mu.RUnlock()
}

// attention is for how many milliseconds a run is attended to in the call that starts it. Told by the event loop, the end
// of a command that does nothing comes an eighth later, at more than twice the processor time. To a long one that is
// nothing.
const attention = 10

// start starts a command, which is stopped when the context is done.
func (c *core) start(ctx context.Context, command *Command, flags C.uint64_t) (*job, error) {
	order, err := command.order()
	if err != nil {
		return nil, err
	}
	handle, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer c.exit()
	j, err := c.loop.enlist(command.Tag)
	if err != nil {
		return nil, err
	}
	order.terms.tag = C.uint64_t(j.key)
	order.terms.flags |= flags
	if err := j.bind(ctx); err != nil {
		c.loop.dismiss(j)
		return nil, err
	}

	turns := c.turns
	if flags&C.DSH_REQUEST_FOREGROUND != 0 {
		select {
		case c.attending <- struct{}{}:
			turns = c.attending
			order.terms.attend_ms = attention
			c.giveWay()
		default:
		}
	}
	if order.terms.attend_ms == 0 {
		turns <- struct{}{}
	}
	var (
		process *C.dsh_process_t
		settled C.uint32_t
		cerr    *C.dsh_error_t
	)
	status := C.dshgo_start(handle, &order.terms, order.policy, order.script, order.input, order.texts.pointer(),
		j.cancel, &process, &settled, &cerr)
	<-turns
	if status != C.DSH_OK {
		j.drop()
		failure := failure(status, cerr)
		if failure.Code == ErrCancelled {
			failure.cause = contextError(ctx)
		}
		return nil, failure
	}
	j.hold(process, settled != 0)
	return j, nil
}

// giveWay begins a new time slice now and then. A goroutine that runs one short command after the other has nothing else
// to wait for, so to the scheduler it is one slice that goes on and on: from 10 ms on it takes the processor away from
// each of its calls, which costs every run more than all else that is done here.
func (c *core) giveWay() {
	if now := int64(time.Since(c.born)); now-c.gaveWay.Load() > int64(5*time.Millisecond) {
		c.gaveWay.Store(now)
		runtime.Gosched()
	}
}

// shutdown ends everything; 0 means the default limit.
func (c *core) shutdown(limitMillis uint64) error {
	handle, err := c.enter()
	if err != nil {
		return nil // closed, and so shut down
	}
	defer c.exit()
	var cerr *C.dsh_error_t
	if status := C.dsh_executor_shutdown(handle, C.uint64_t(limitMillis), &cerr); status != C.DSH_OK {
		return failure(status, cerr)
	}
	return nil
}

func (c *core) close() error {
	c.closing.Do(func() {
		c.closeErr = c.shutdown(0)
		c.loop.stop()
		c.mu.Lock()
		handle := c.handle
		c.handle = nil
		c.mu.Unlock()
		C.dsh_executor_free(handle)
	})
	return c.closeErr
}
