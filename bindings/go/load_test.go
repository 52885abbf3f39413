package dsh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fewThreads is how many threads Go may make for reasons of its own: for calls that take a moment, not for waiting.
func fewThreads() int {
	return 2*runtime.GOMAXPROCS(0) + 8
}

// warm gets threads and descriptors made that Go makes once.
func warm(t *testing.T, ex *Executor) {
	t.Helper()
	var group sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		group.Add(1)
		go func() {
			defer group.Done()
			mustRun(t, ex, Command{Script: "true"})
		}()
	}
	group.Wait()
}

func TestFiveHundredProcessesAtATimeGiveAllTheirOutputWithoutThreads(t *testing.T) {
	const count = 500
	ex := newExecutor(t)
	warm(t, ex)
	before := threads(t)
	// All wait at a gate, which is opened when the last of them has come: a pipe that ends when it is closed here.
	gate := t.TempDir() + "/gate"
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var arrived, ended sync.WaitGroup
	texts := make([]string, count)
	for i := range count {
		arrived.Add(1)
		ended.Add(1)
		go func() {
			defer ended.Done()
			process, err := ex.Start(Command{
				Script: fmt.Sprintf("exec 3<%s; echo begin %d; read -u 3; seq %d %d", gate, i, i, i+1000),
			})
			if err != nil {
				t.Error(err)
				arrived.Done()
				return
			}
			defer process.Close()
			reader := bufio.NewReader(process.Stdout())
			first, _ := reader.ReadString('\n')
			arrived.Done()
			rest, err := io.ReadAll(reader)
			if err != nil {
				t.Error(err)
			}
			<-process.Done()
			texts[i] = first + string(rest)
		}()
	}
	arrived.Wait()
	stats, _ := ex.Stats()
	equal(t, "live", stats.Live, count)
	during := threads(t)
	held.Close()
	ended.Wait()
	for i, text := range texts {
		want := fmt.Sprintf("begin %d\n", i)
		for n := i; n <= i+1000; n++ {
			want += fmt.Sprintln(n)
		}
		if text != want {
			t.Fatalf("process %d gave %d bytes, want %d", i, len(text), len(want))
		}
	}
	t.Logf("threads: %d before, %d with %d commands", before, during, count)
	if during > before+fewThreads() {
		t.Errorf("%d threads grew to %d", before, during)
	}
}

func TestFiveHundredRunsAtATimeTakeNoThreads(t *testing.T) {
	const count = 500
	ex := newExecutor(t)
	warm(t, ex)
	before := threads(t)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range count {
		group.Add(1)
		go func() {
			defer group.Done()
			result, err := ex.Run(ctx, Command{Script: "exec sleep 600", Timeout: time.Hour})
			if !errors.Is(err, context.Canceled) || result == nil || result.Cause != StopCancel {
				t.Errorf("got %+v and %v", result, err)
			}
		}()
	}
	eventually(t, "all to run", func() bool { stats, _ := ex.Stats(); return stats.Live == count })
	during := threads(t)
	cancel()
	group.Wait()
	t.Logf("threads: %d before, %d with %d runs, %d after their cancellation", before, during, count, threads(t))
	if during > before+fewThreads() || threads(t) > before+fewThreads() {
		t.Errorf("%d threads grew to %d and %d", before, during, threads(t))
	}
	eventually(t, "nothing to be left", func() bool { stats, _ := ex.Stats(); return stats.Live == 0 })
}

func TestACancellationStormSettlesEverythingAndLeavesNothing(t *testing.T) {
	ex := newExecutor(t, WithGrace(300*time.Millisecond))
	scripts := []string{"sleep 600", "sleep 600 & sleep 600 & wait", "echo x; sleep 600", "true", "trap 'exit 0' TERM; sleep 600 & wait"}
	var group sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range 400 {
		slots <- struct{}{}
		group.Add(1)
		go func() {
			defer group.Done()
			defer func() { <-slots }()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			moment := time.Duration(rand.IntN(20_000)) * time.Microsecond
			time.AfterFunc(moment, cancel)
			command := Command{Script: scripts[i%len(scripts)]}
			if i%2 == 0 {
				result, err := ex.Run(ctx, command)
				checkCancelled(t, result, err)
				return
			}
			process, err := ex.StartContext(ctx, command)
			if err != nil {
				isError(t, "start", err, ErrCancelled)
				return
			}
			if i%4 == 1 {
				process.Close()
			}
			within(t, "a process to settle", process.Done())
		}()
	}
	group.Wait()
	eventually(t, "nothing to be left", func() bool { stats, _ := ex.Stats(); return stats.Live == 0 })
	eventuallyAfterGC(t, "no handle to be left", func() bool { return handles.Load() == 0 })
}

// checkCancelled checks a run that was cancelled at whatever moment.
func checkCancelled(t *testing.T, result *Result, err error) {
	switch {
	case result == nil:
		isError(t, "not run", err, ErrCancelled)
	case result.Cause == StopCancel:
		isError(t, "cancelled", err, context.Canceled)
		equal(t, "survivors", len(result.Survivors), 0)
	default:
		isError(t, "ended before", err, nil)
		equal(t, "cause", result.Cause, StopNone)
	}
}

func TestAThousandRunsLeaveNoHandleDescriptorOrThread(t *testing.T) {
	ex, err := New()
	if err != nil {
		t.Fatal(err)
	}
	warm(t, ex)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	eventuallyAfterGC(t, "no handle to be left of other tests", func() bool { return handles.Load() == 0 })
	fds, before := descriptors(t), threads(t)
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 250 {
				if i%2 == 0 {
					mustRun(t, ex, Command{Script: ":", Env: []string{"A=b"}, Input: []byte("x")})
					continue
				}
				process, err := ex.StartContext(ctx, Command{Script: ":"})
				if err != nil {
					t.Error(err)
					return
				}
				within(t, "a process to settle", process.Done())
				process.Close()
			}
		}()
	}
	group.Wait()
	eventually(t, "nothing to be left", func() bool { stats, _ := ex.Stats(); return stats.Live == 0 })
	eventually(t, "no handle to be left", func() bool { return handles.Load() == 0 })
	ex.core.loop.mu.Lock()
	equal(t, "jobs", len(ex.core.loop.jobs), 0)
	ex.core.loop.mu.Unlock()
	eventually(t, "the descriptors to be closed", func() bool { return descriptors(t) <= fds })
	if now := threads(t); now > before+fewThreads() {
		t.Errorf("%d threads grew to %d", before, now)
	}
	if err := ex.Close(); err != nil {
		t.Fatal(err)
	}
	if now := descriptors(t); now >= fds {
		t.Errorf("a closed executor leaves %d descriptors of %d", now, fds)
	}
}

func TestExecutorsLeaveNoDescriptorThreadOrGoroutine(t *testing.T) {
	once := func() {
		ex, err := New()
		if err != nil {
			t.Fatal(err)
		}
		mustRun(t, ex, Command{Script: "true"})
		if err := ex.Close(); err != nil {
			t.Fatal(err)
		}
	}
	once()
	fds, before, goroutines := descriptors(t), threads(t), runtime.NumGoroutine()
	for range 50 {
		once()
	}
	equal(t, "descriptors", descriptors(t), fds)
	if now := threads(t); now > before+fewThreads() {
		t.Errorf("%d threads grew to %d", before, now)
	}
	eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
}

func TestNoEventIsLostUnderLoad(t *testing.T) {
	ex := newExecutor(t)
	var group sync.WaitGroup
	for worker := range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 40 {
				process, err := ex.Start(Command{Script: fmt.Sprintf("echo %d; echo %d >&2", worker, i)})
				if err != nil {
					t.Error(err)
					return
				}
				// Each of these hangs for ever when its event is lost.
				out, _ := io.ReadAll(process.Stdout())
				errs, _ := io.ReadAll(process.Stderr())
				within(t, "a process to settle", process.Done())
				within(t, "a tree to end", process.Quiescent())
				equal(t, "stdout", string(out), fmt.Sprintln(worker))
				equal(t, "stderr", string(errs), fmt.Sprintln(i))
			}
		}()
	}
	group.Wait()
}
