package dsh

import (
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

func TestAProcessTellsWhatBecameOfIt(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "read line; echo $line; echo err >&2; exit 3", Input: []byte("in\n"), Tag: 42})
	state := mustWait(t, process)
	equal(t, "status", state.Status, StatusCompleted)
	equal(t, "exit", state.Exit, ExitCode)
	equal(t, "code", state.Code, 3)
	equal(t, "tag", state.Tag, 42)
	equal(t, "stdout", state.StdoutTotal, 3)
	equal(t, "stderr", state.StderrTotal, 4)
	equal(t, "input", state.InputWritten, 3)
	if state.PID <= 0 || state.ProcessID == 0 {
		t.Errorf("no numbers: %+v", state)
	}
	within(t, "the end of the tree", process.Quiescent())
	state = mustWait(t, process)
	equal(t, "quiescent", state.Quiescent, true)
}

func TestARunningProcessHasNoExit(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "sleep 600"})
	state, err := process.State()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", state.Status, StatusRunning)
	equal(t, "exit", state.Exit, ExitNone)
	equal(t, "code", state.Code, -1)
	equal(t, "alive", alive(state.PID), true)
}

func TestAKillCountsOnce(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "sleep 600 & sleep 600"})
	first, err := process.Kill()
	equal(t, "first", first, true)
	equal(t, "error", err, nil)
	second, _ := process.Kill()
	equal(t, "second", second, false)
	state := mustWait(t, process)
	equal(t, "status", state.Status, StatusKilled)
	equal(t, "cause", state.Cause, StopKill)
	equal(t, "signal", state.Signal, syscall.SIGTERM)
	ended := mustStart(t, ex, Command{Script: "true"})
	mustWait(t, ended)
	late, _ := ended.Kill()
	equal(t, "after its own end", late, false)
}

func TestAWaitEndsWithItsContextAndTheProcessGoesOn(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "sleep 600"})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := process.Wait(ctx)
	isError(t, "wait", err, context.DeadlineExceeded)
	state, _ := process.State()
	equal(t, "status", state.Status, StatusRunning)
	process.Kill()
	mustWait(t, process)
	if _, err := process.Wait(ctx); err != nil {
		t.Errorf("a process that has settled is waited for: %v", err)
	}
}

func TestAProcessEndsWithItsContext(t *testing.T) {
	ex := newExecutor(t)
	ctx, cancel := context.WithCancel(context.Background())
	process, err := ex.StartContext(ctx, Command{Script: "sleep 600"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	state := mustWait(t, process)
	equal(t, "cause", state.Cause, StopCancel)
	equal(t, "aborted", state.Aborted, true)
}

func TestAContextThatIsDoneLaterChangesNothing(t *testing.T) {
	ex := newExecutor(t)
	ctx, cancel := context.WithCancel(context.Background())
	process, err := ex.StartContext(ctx, Command{Script: "exit 3"})
	if err != nil {
		t.Fatal(err)
	}
	mustWait(t, process)
	cancel()
	equal(t, "cause", mustWait(t, process).Cause, StopNone)
}

func TestAClosedProcessGoesOnAndIsStillBoundToItsContext(t *testing.T) {
	ex := newExecutor(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	process, err := ex.StartContext(ctx, Command{Script: "sleep 600"})
	if err != nil {
		t.Fatal(err)
	}
	state, _ := process.State()
	equal(t, "close", process.Close(), nil)
	equal(t, "close again", process.Close(), nil)
	equal(t, "alive", alive(state.PID), true)
	select {
	case <-process.Done():
		t.Error("it is said to have settled")
	default:
	}
	cancel()
	within(t, "its end", process.Quiescent())
	equal(t, "alive", alive(state.PID), false)
}

func TestAClosedProcessSaysSo(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "sleep 600"})
	stdout := process.Stdout()
	waiting := make(chan error)
	go func() { _, err := stdout.Read(make([]byte, 1)); waiting <- err }()
	go func() { _, err := process.Read(make([]byte, 1)); waiting <- err }()
	process.Close()
	for range 2 {
		select {
		case err := <-waiting:
			isError(t, "a reader that waits", err, ErrClosed)
		case <-time.After(patience):
			t.Fatal("a reader hangs")
		}
	}
	_, err := process.Kill()
	isError(t, "kill", err, ErrClosed)
	_, err = process.State()
	isError(t, "state", err, ErrClosed)
	_, err = process.ReadOutput()
	isError(t, "read output", err, ErrClosed)
	_, err = process.ReadStream(Stdout, 0, make([]byte, 1))
	isError(t, "read stream", err, ErrClosed)
	_, err = process.SpillPath(Stdout)
	isError(t, "spill path", err, ErrClosed)
}

func TestSurvivorsAndHoldersAreListedWhateverTheirNumber(t *testing.T) {
	ex := newExecutor(t, WithDrain(100*time.Millisecond))
	process := mustStart(t, ex, Command{Script: "for i in {1..50}; do sleep 600 & done"})
	state := mustWait(t, process)
	equal(t, "held", state.PipesHeld, true)
	equal(t, "holders", len(state.HeldBy), 50)
	equal(t, "survivors", len(state.Survivors), 50)
	process.Kill()
	within(t, "the end of the tree", process.Quiescent())
	equal(t, "survivors", len(mustWait(t, process).Survivors), 0)
}

func TestOutputIsTakenOnceAndInItsMergedForm(t *testing.T) {
	ex := newExecutor(t)
	mark := t.TempDir() + "/go-on"
	process := mustStart(t, ex, Command{
		Script: "echo one; while [ ! -e " + mark + " ]; do sleep 0.01; done; printf two; echo err >&2",
	})
	var text strings.Builder
	take := func() bool {
		chunk, err := process.ReadOutput()
		if err != nil {
			t.Fatal(err)
		}
		text.Write(chunk.Bytes)
		return chunk.End
	}
	eventually(t, "the first line", func() bool { take(); return text.String() == "one\n" })
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustWait(t, process)
	eventually(t, "the end", take)
	equal(t, "text", text.String(), "one\ntwo\n[stderr]\nerr\n")
}

func TestAProcessIsAReaderOfItsOutput(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "for i in 1 2 3; do echo $i; sleep 0.02; done"})
	text, err := io.ReadAll(iotest.OneByteReader(process))
	equal(t, "text", string(text), "1\n2\n3\n")
	equal(t, "error", err, nil)

	process = mustStart(t, ex, Command{Script: "echo all"})
	first := make([]byte, 1)
	if _, err := io.ReadFull(process, first); err != nil {
		t.Fatal(err)
	}
	chunk, err := process.ReadOutput()
	equal(t, "what Read has left", string(first)+string(chunk.Bytes), "all\n")
	equal(t, "error", err, nil)
}

func TestAReaderOfOutputSaysWhatIsMissing(t *testing.T) {
	ex := newExecutor(t, WithMaxOutput(1000))
	process := mustStart(t, ex, Command{Script: "seq 1 1000"})
	state := mustWait(t, process)
	text, err := io.ReadAll(process)
	lost, ok := err.(*LostError)
	if !ok || len(text) != 0 {
		t.Fatalf("got %d bytes and %v", len(text), err)
	}
	text, err = io.ReadAll(process)
	equal(t, "error", err, nil)
	equal(t, "all", int64(len(text))+lost.Bytes, state.StdoutTotal)
	if !strings.HasSuffix(string(text), "999\n1000\n") {
		t.Errorf("the tail is %q", text)
	}
}
