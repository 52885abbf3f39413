package dsh

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAResultHasTheExitCodeAndBothStreams(t *testing.T) {
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{Script: "echo out; echo err >&2; exit 3"})
	equal(t, "exit", result.Exit, ExitCode)
	equal(t, "code", result.Code, 3)
	equal(t, "success", result.Success(), false)
	equal(t, "stdout", result.Stdout.String(), "out\n")
	equal(t, "stderr", result.Stderr.String(), "err\n")
	equal(t, "total", result.Stdout.Total, 4)
	equal(t, "cause", result.Cause, StopNone)
	equal(t, "timeout", result.Timeout, 2*time.Minute)
	if result.Wall <= 0 || result.MaxRSS <= 0 || result.ProcessID == 0 {
		t.Errorf("no wall time, memory or id: %+v", result)
	}
}

func TestADeathBySignalIsNoExitCode(t *testing.T) {
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{Script: "kill -9 $$"})
	equal(t, "exit", result.Exit, ExitSignal)
	equal(t, "signal", result.Signal, syscall.SIGKILL)
	equal(t, "code", result.Code, -1)
	equal(t, "aborted", result.Aborted, false)
}

func TestTheTimeoutOfACommandIsAResult(t *testing.T) {
	t.Parallel() // it mostly sleeps
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{Script: "echo before; sleep 600 & sleep 600", Timeout: time.Second})
	equal(t, "timed out", result.TimedOut, true)
	equal(t, "aborted", result.Aborted, false)
	equal(t, "cause", result.Cause, StopTimeout)
	equal(t, "stage", result.Stage, StageTerm)
	equal(t, "timeout", result.Timeout, time.Second)
	equal(t, "stdout", result.Stdout.String(), "before\n")
	equal(t, "survivors", len(result.Survivors), 0)
}

func TestATimeoutIsTheFirstCauseWhateverTheCommandThenExitsWith(t *testing.T) {
	t.Parallel() // it mostly sleeps
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{
		Script:  "trap 'exit 0' TERM; while :; do sleep 0.01; done",
		Timeout: time.Second,
	})
	equal(t, "code", result.Code, 0)
	equal(t, "timed out", result.TimedOut, true)
}

func TestTheDefaultTimeoutAndItsCapAreTheExecutors(t *testing.T) {
	ex := newExecutor(t, WithTimeout(time.Second), WithMaxTimeout(5*time.Second))
	equal(t, "default", mustRun(t, ex, Command{Script: "true"}).Timeout, time.Second)
	equal(t, "capped", mustRun(t, ex, Command{Script: "true", Timeout: time.Hour}).Timeout, 5*time.Second)
	equal(t, "forever", mustRun(t, ex, Command{Script: "true", Timeout: forever}).Timeout, 5*time.Second)
	equal(t, "tiny", mustRun(t, ex, Command{Script: "true", Timeout: time.Nanosecond}).Timeout, time.Millisecond)
}

func TestADeadlineOfTheContextGivesTheOutputAndTheContextsError(t *testing.T) {
	t.Parallel() // it mostly sleeps
	ex := newExecutor(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	result, err := ex.Run(ctx, Command{Script: "echo before; sleep 600"})
	isError(t, "run", err, context.DeadlineExceeded)
	if result == nil {
		t.Fatal("the result is lost")
	}
	equal(t, "stdout", result.Stdout.String(), "before\n")
	equal(t, "aborted", result.Aborted, true)
	equal(t, "timed out", result.TimedOut, false)
	equal(t, "cause", result.Cause, StopCancel)
}

func TestACancelledContextGivesItsCauseToo(t *testing.T) {
	ex := newExecutor(t)
	reason := errors.New("the user has had enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	mark := t.TempDir() + "/mark"
	go func() {
		eventually(t, "the command to run", func() bool { _, err := os.Stat(mark); return err == nil })
		cancel(reason)
	}()
	result, err := ex.Run(ctx, Command{Script: "echo before; : >" + mark + "; sleep 600"})
	isError(t, "run", err, context.Canceled)
	isError(t, "run", err, reason)
	equal(t, "stdout", result.Stdout.String(), "before\n")
	equal(t, "cause", result.Cause, StopCancel)
}

func TestACancelledRunEndsWithTheWholeTree(t *testing.T) {
	ex := newExecutor(t, WithGrace(200*time.Millisecond))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mark := t.TempDir() + "/mark"
	go func() {
		eventually(t, "the command to run", func() bool { text, _ := os.ReadFile(mark); return len(text) > 0 })
		cancel()
	}()
	result, err := ex.Run(ctx, Command{Script: "(trap '' TERM; echo $BASHPID >" + mark + "; sleep 600; sleep 600) & wait"})
	isError(t, "run", err, context.Canceled)
	equal(t, "stage", result.Stage, StageKill)
	equal(t, "survivors", len(result.Survivors), 0)
	text, _ := os.ReadFile(mark)
	if pid := number(t, string(text)); alive(pid) {
		t.Errorf("process %d is alive", pid)
	}
}

func TestAContextThatIsDoneAlreadyStartsNothing(t *testing.T) {
	ex := newExecutor(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result, err := ex.Run(ctx, Command{Script: "true"})
	if result != nil {
		t.Errorf("there is a result: %+v", result)
	}
	isError(t, "run", err, ErrCancelled)
	isError(t, "run", err, context.Canceled)
	_, err = ex.StartContext(ctx, Command{Script: "true"})
	isError(t, "start", err, ErrCancelled)
	stats, err := ex.Stats()
	equal(t, "stats error", err, nil)
	equal(t, "ended", stats.Ended, 0)
}

func TestInputIsGivenAndCounted(t *testing.T) {
	ex := newExecutor(t, WithMaxOutput(8<<20))
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	result := mustRun(t, ex, Command{Script: "cat", Input: big})
	if !bytes.Equal(result.Stdout.Bytes, big) {
		t.Errorf("%d bytes came back of %d", len(result.Stdout.Bytes), len(big))
	}
	equal(t, "written", result.InputWritten, int64(len(big)))
	equal(t, "code", mustRun(t, ex, Command{Script: "exit 3", Input: big}).Code, 3)
}

func TestNoInputIsNothingToReadAndAnEmptyOneAnEmptyPipe(t *testing.T) {
	ex := newExecutor(t)
	where := "readlink /proc/self/fd/0; cat"
	equal(t, "nil", mustRun(t, ex, Command{Script: where}).Stdout.String(), "/dev/null\n")
	got := mustRun(t, ex, Command{Script: where, Input: []byte{}}).Stdout.String()
	if !strings.HasPrefix(got, "pipe:") {
		t.Errorf("an empty input is %q", got)
	}
}

func TestTheEnvironmentIsSetRemovedAndScrubbed(t *testing.T) {
	t.Setenv("GO_BINDING_API_KEY", "secret")
	t.Setenv("GO_BINDING_PLAIN", "plain")
	t.Setenv("GO_BINDING_GONE", "here")
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{
		Script: "env",
		Env:    []string{"GO_BINDING_NEW=a b=c", "GO_BINDING_GONE"},
		DSHEnv: []string{"DSH_STEP=7"},
	})
	lines := strings.Split(result.Stdout.String(), "\n")
	for line, want := range map[string]bool{
		"GO_BINDING_PLAIN=plain":    true,
		"GO_BINDING_NEW=a b=c":      true,
		"DSH_STEP=7":                true,
		"GO_BINDING_GONE=here":      false,
		"GO_BINDING_API_KEY=secret": false,
	} {
		equal(t, line, slices.Contains(lines, line), want)
	}
	equal(t, "scrubbed", slices.Contains(result.Scrubbed, "GO_BINDING_API_KEY"), true)
	allowed := newExecutor(t, WithEnvAllow("GO_BINDING_*"), WithEnvDeny("GO_BINDING_PLAIN", "NOTHING_*"))
	got := mustRun(t, allowed, Command{Script: "echo $GO_BINDING_API_KEY"}).Stdout.String()
	equal(t, "allowed", got, "secret\n")
	bare := newExecutor(t, WithoutInheritedEnv())
	got = mustRun(t, bare, Command{Script: "echo -$GO_BINDING_PLAIN-"}).Stdout.String()
	equal(t, "not inherited", got, "--\n")
}

func TestALongListOfVariablesArrivesWhole(t *testing.T) {
	ex := newExecutor(t)
	var env []string
	for i := range 300 {
		env = append(env, "LONG_LIST_"+strings.Repeat("X", i)+"=1")
	}
	got := mustRun(t, ex, Command{Script: "env | grep -c ^LONG_LIST_", Env: env}).Stdout.String()
	equal(t, "variables", got, "300\n")
}

func TestTheDirectoryIsTheCommandsOrTheExecutors(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/below", 0o700); err != nil {
		t.Fatal(err)
	}
	ex := newExecutor(t, WithDir(dir))
	equal(t, "executor", mustRun(t, ex, Command{Script: "pwd"}).Stdout.String(), dir+"\n")
	equal(t, "relative", mustRun(t, ex, Command{Script: "pwd", Dir: "below"}).Stdout.String(), dir+"/below\n")
	equal(t, "absolute", mustRun(t, ex, Command{Script: "pwd", Dir: "/"}).Stdout.String(), "/\n")
}

func TestMergedStreamsAreInTheirOrderOfArrival(t *testing.T) {
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{Script: "for i in 1 2 3; do echo o$i; echo e$i >&2; done", MergeStderr: true})
	equal(t, "stdout", result.Stdout.String(), "o1\ne1\no2\ne2\no3\ne3\n")
	equal(t, "stderr", result.Stderr.Total, 0)
}

func TestALongStreamIsItsTailInMemoryAndWholeInAFile(t *testing.T) {
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{Script: "seq 1 100000", MaxStdout: 1000})
	if len(result.Stdout.Bytes) > 1000 || !strings.HasSuffix(result.Stdout.String(), "\n99999\n100000\n") {
		t.Errorf("kept %d bytes", len(result.Stdout.Bytes))
	}
	equal(t, "count", int64(len(result.Stdout.Bytes))+result.Stdout.Omitted, result.Stdout.Total)
	whole, err := os.ReadFile(result.Stdout.SpillPath)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "file", int64(len(whole)), result.Stdout.Total)
	equal(t, "spill error", result.Stdout.SpillError, "")
}

func TestAStreamThatIsTooLongForTheDiskSaysWhyThereIsNoFile(t *testing.T) {
	ex := newExecutor(t, WithMaxOutput(100), WithMaxSpill(1000), WithKeep(KeepHeadTail))
	result := mustRun(t, ex, Command{Script: "seq 1 10000"})
	equal(t, "path", result.Stdout.SpillPath, "")
	if result.Stdout.SpillError == "" {
		t.Error("no reason is given")
	}
	if !strings.HasPrefix(result.Stdout.String(), "1\n2\n") || result.Stdout.OmittedAt == 0 {
		t.Errorf("the head is missing: %q at %d", result.Stdout.String(), result.Stdout.OmittedAt)
	}
}

func TestWhatACommandLeavesBehindIsKeptOrKilled(t *testing.T) {
	ex := newExecutor(t)
	script := "sleep 600 >/dev/null 2>&1 & echo $!"
	kept := mustRun(t, ex, Command{Script: script})
	equal(t, "kept", len(kept.Survivors), 1)
	equal(t, "alive", alive(number(t, kept.Stdout.String())), true)
	equal(t, "pid", kept.Survivors[0].PID, number(t, kept.Stdout.String()))

	killed := mustRun(t, ex, Command{Script: script, Survivors: KillSurvivors})
	equal(t, "killed", len(killed.Survivors), 0)
	equal(t, "alive", alive(number(t, killed.Stdout.String())), false)
	equal(t, "stopped by", killed.StoppedBy, StopSurvivors)
	equal(t, "cause", killed.Cause, StopNone)
}

func TestPipesThatAreHeldEndTheRunAfterTheDrainLimit(t *testing.T) {
	ex := newExecutor(t, WithDrain(100*time.Millisecond))
	result := mustRun(t, ex, Command{Script: "sleep 600 & echo $!"})
	equal(t, "held", result.PipesHeld, true)
	equal(t, "holders", len(result.HeldBy), 1)
	equal(t, "holder", result.HeldBy[0], number(t, result.Stdout.String()))
}

func TestACommandOfAnyLengthRuns(t *testing.T) {
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{Script: ": " + strings.Repeat("x", 300_000) + "\necho done"})
	equal(t, "stdout", result.Stdout.String(), "done\n")
	equal(t, "empty", mustRun(t, ex, Command{}).Code, 0)
}

func TestOutputIsBytes(t *testing.T) {
	ex := newExecutor(t)
	result := mustRun(t, ex, Command{Script: `printf 'a\0b\377c'`})
	equal(t, "stdout", result.Stdout.String(), "a\x00b\xffc")
}

func TestManyRunsAtATimeDoNotMixUp(t *testing.T) {
	ex := newExecutor(t)
	t.Run("group", func(t *testing.T) {
		for i := range 40 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				text := strings.Repeat(string(rune('A'+i%26)), 100+i)
				result := mustRun(t, ex, Command{Script: "echo " + text})
				equal(t, "stdout", result.Stdout.String(), text+"\n")
			})
		}
	})
}
