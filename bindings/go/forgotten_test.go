package dsh

import (
	"context"
	"runtime"
	"testing"
	"weak"
)

func TestAForgottenProcessGoesOnAndItsHandleIsFreed(t *testing.T) {
	ex := newExecutor(t)
	eventuallyAfterGC(t, "no handle to be left of other tests", func() bool { return handles.Load() == 0 })
	pid, done := func() (int, <-chan struct{}) {
		process := mustStart(t, ex, Command{Script: "sleep 600"})
		state, err := process.State()
		if err != nil {
			t.Fatal(err)
		}
		return state.PID, process.Done()
	}()
	for range 5 {
		runtime.GC()
	}
	equal(t, "alive", alive(pid), true)
	stats, _ := ex.Stats()
	equal(t, "live", stats.Live, 1)
	select {
	case <-done:
		t.Error("it is said to have settled")
	default:
	}
	equal(t, "shutdown", ex.Shutdown(patient(t)), nil)
	within(t, "the end, told by the channel alone", done)
	eventuallyAfterGC(t, "the handle to be freed", func() bool { return handles.Load() == 0 })
}

func TestForgottenProcessesThatHaveEndedAreFreed(t *testing.T) {
	ex := newExecutor(t)
	for range 100 {
		mustStart(t, ex, Command{Script: ":"})
	}
	eventuallyAfterGC(t, "the handles to be freed", func() bool { return handles.Load() == 0 })
}

func TestAForgottenExecutorEndsItsCommands(t *testing.T) {
	fds := descriptors(t)
	pid, done := func() (int, <-chan struct{}) {
		ex, err := New()
		if err != nil {
			t.Fatal(err)
		}
		process := mustStart(t, ex, Command{Script: "sleep 600"})
		state, _ := process.State()
		return state.PID, process.Done()
	}()
	eventuallyAfterGC(t, "the command to be ended", func() bool { return !alive(pid) })
	within(t, "the end to be told", done)
	eventuallyAfterGC(t, "the descriptors to be closed", func() bool { return descriptors(t) <= fds })
}

func TestAProcessKeepsItsExecutor(t *testing.T) {
	process := func() *Process {
		ex, err := New()
		if err != nil {
			t.Fatal(err)
		}
		return mustStart(t, ex, Command{Script: "sleep 600"})
	}()
	for range 5 {
		runtime.GC()
	}
	state, err := process.State()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", state.Status, StatusRunning)
	process.ex.Close()
}

func TestARunKeepsItsExecutor(t *testing.T) {
	result, err := func() (*Result, error) {
		ex, err := New()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 5 {
				runtime.GC()
			}
		}()
		return ex.Run(context.Background(), Command{Script: "sleep 0.3; echo done"})
	}()
	equal(t, "error", err, nil)
	equal(t, "stdout", result.Stdout.String(), "done\n")
}

func TestAnExecutorThatWasClosedAndForgottenIsClosedOnce(t *testing.T) {
	for range 10 {
		ex, err := New()
		if err != nil {
			t.Fatal(err)
		}
		ex.Close()
	}
	for range 3 {
		runtime.GC()
	}
}

func TestALongContextDoesNotKeepWhatHasEnded(t *testing.T) {
	ex := newExecutor(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kept := func() weak.Pointer[job] {
		process, err := ex.StartContext(ctx, Command{Script: "true"})
		if err != nil {
			t.Fatal(err)
		}
		defer process.Close()
		within(t, "the end", process.Quiescent())
		return weak.Make(process.job)
	}()
	eventuallyAfterGC(t, "what has ended to be collected", func() bool { return kept.Value() == nil })
}
