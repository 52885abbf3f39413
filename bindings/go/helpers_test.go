package dsh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is how long something may take before it is said to hang.
const patience = 60 * time.Second

// newExecutor makes one that the test closes.
func newExecutor(t testing.TB, options ...Option) *Executor {
	t.Helper()
	ex, err := New(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ex.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return ex
}

// patient is a context for what must not hang.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// mustRun runs a command that has to give a result.
func mustRun(t testing.TB, ex *Executor, command Command) *Result {
	t.Helper()
	result, err := ex.Run(patient(t), command)
	if err != nil {
		t.Fatalf("%q: %v", command.Script, err)
	}
	return result
}

// mustStart starts a command in the background.
func mustStart(t testing.TB, ex *Executor, command Command) *Process {
	t.Helper()
	process, err := ex.Start(command)
	if err != nil {
		t.Fatalf("%q: %v", command.Script, err)
	}
	return process
}

// mustWait waits for a process to settle.
func mustWait(t testing.TB, process *Process) *ProcessState {
	t.Helper()
	state, err := process.Wait(patient(t))
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	return state
}

// within waits for a channel to be closed.
func within(t testing.TB, what string, closed <-chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// eventuallyAfterGC is the same for what the garbage collector brings about.
func eventuallyAfterGC(t testing.TB, what string, condition func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		runtime.GC()
		return condition()
	})
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// threads is how many threads the test has.
func threads(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if number, ok := strings.CutPrefix(line, "Threads:"); ok {
			count, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
	}
	t.Fatal("no Threads line")
	return 0
}

// descriptors is how many the test has open.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// equal compares one fact.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// isError checks that an error is this one.
func isError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got the error %v, want %v", what, err, want)
	}
}

// number reads a pid that a command has printed.
func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
