package dsh

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestAShutdownEndsWhatRunsAndLetsItBeRead(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "echo before; sleep 600"})
	if _, err := process.Stdout().Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ran := make(chan *Result)
	go func() {
		result, err := ex.Run(context.Background(), Command{Script: "sleep 600"})
		isError(t, "run", err, nil)
		ran <- result
	}()
	eventually(t, "both to run", func() bool { stats, _ := ex.Stats(); return stats.Live == 2 })
	if err := ex.Shutdown(patient(t)); err != nil {
		t.Fatal(err)
	}
	state := mustWait(t, process)
	equal(t, "cause", state.Cause, StopShutdown)
	equal(t, "aborted", state.Aborted, true)
	within(t, "the end of the tree", process.Quiescent())
	chunk, err := process.ReadOutput()
	equal(t, "output", string(chunk.Bytes), "before\n")
	equal(t, "read error", err, nil)
	select {
	case result := <-ran:
		equal(t, "cause of the run", result.Cause, StopShutdown)
	case <-time.After(patience):
		t.Fatal("the run hangs")
	}

	_, err = ex.Run(patient(t), Command{Script: "true"})
	isError(t, "run", err, ErrShutdown)
	equal(t, "again", ex.Shutdown(patient(t)), nil)
	stats, err := ex.Stats()
	equal(t, "stats error", err, nil)
	equal(t, "live", stats.Live, 0)
	equal(t, "threads", stats.Threads, 0)
}

func TestACloseEndsWhatRunsAndLetsItBeRead(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "echo before; sleep 600"})
	reader := process.Stdout()
	if _, err := reader.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := ex.Close(); err != nil {
		t.Fatal(err)
	}
	equal(t, "cause", mustWait(t, process).Cause, StopShutdown)
	within(t, "the end of the tree", process.Quiescent())
	chunk, _ := process.ReadOutput()
	equal(t, "output", string(chunk.Bytes), "before\n")
	killed, err := process.Kill()
	equal(t, "killed", killed, false)
	equal(t, "kill", err, nil)
	equal(t, "close", process.Close(), nil)
}

func TestAfterCloseEveryCallSaysSo(t *testing.T) {
	ex, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			equal(t, "close", ex.Close(), nil)
		}()
	}
	group.Wait()
	_, err = ex.Run(patient(t), Command{Script: "true"})
	isError(t, "run", err, ErrShutdown)
	_, err = ex.Start(Command{Script: "true"})
	isError(t, "start", err, ErrShutdown)
	_, err = ex.Resolve(Command{Script: "true"})
	isError(t, "resolve", err, ErrShutdown)
	_, err = ex.Stats()
	isError(t, "stats", err, ErrShutdown)
	_, err = ex.Config()
	isError(t, "config", err, ErrShutdown)
	isError(t, "configure", ex.Configure(), ErrShutdown)
	equal(t, "shutdown", ex.Shutdown(patient(t)), nil)
	equal(t, "close", ex.Close(), nil)
}

func TestAShutdownWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel() // it mostly sleeps
	ex := newExecutor(t, WithGrace(2*time.Second))
	process := mustStart(t, ex, Command{Script: "trap '' TERM; echo ready; while :; do sleep 0.1; done"})
	if _, err := process.Stdout().Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	isError(t, "shutdown", ex.Shutdown(ctx), context.DeadlineExceeded)
	equal(t, "shutdown", ex.Shutdown(patient(t)), nil)
	state := mustWait(t, process)
	equal(t, "signal", state.Signal, syscall.SIGKILL)
	equal(t, "stage", state.Stage, StageKill)
}

func TestAnExecutorIsClosedWhileItIsUsed(t *testing.T) {
	for range 10 {
		ex, err := New(WithGrace(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 8 {
			group.Add(1)
			go func() {
				defer group.Done()
				for {
					result, err := ex.Run(context.Background(), Command{Script: "sleep 600"})
					if err != nil {
						isError(t, "run", err, ErrShutdown)
						return
					}
					equal(t, "cause", result.Cause, StopShutdown)
				}
			}()
		}
		eventually(t, "the commands to run", func() bool { stats, _ := ex.Stats(); return stats.Live > 2 })
		equal(t, "close", ex.Close(), nil)
		group.Wait()
	}
}

func TestTheStatisticsTellHowChildrenAreMade(t *testing.T) {
	ex := newExecutor(t)
	mustRun(t, ex, Command{Script: "true"})
	// A run is over when its command has settled; that nothing of it is left is noticed right after.
	eventually(t, "the command to be over", func() bool { stats, _ := ex.Stats(); return stats.Ended == 1 })
	stats, err := ex.Stats()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "threads", stats.Threads, 2)
	if FeatureVFork.Available() != 0 {
		equal(t, "spawn path", stats.SpawnPath, SpawnVFork)
	}
	if FeatureGuard.Available() != 0 && stats.GuardPID == 0 {
		t.Error("there is no guard")
	}
}

func TestTheVersionIsTheLibrarys(t *testing.T) {
	if Version() == "" || Feature(9999).Available() != 0 {
		t.Errorf("version %q", Version())
	}
	_ = ABIVersion()
}
