// Agentstep is one step of an agent's loop: it takes the arguments of a tool call as a model would write them, runs the
// command, and prints what the model would be shown.
//
//	agentstep '{"command": "go vet ./...", "timeout_ms": 60000}'
//
// Without an argument it goes through a few calls that show each kind of ending.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"libdsh.org/dsh"
)

// call is the arguments of the tool "bash".
type call struct {
	Command   string `json:"command"`
	TimeoutMS int64  `json:"timeout_ms"`
	Workdir   string `json:"workdir"`
}

// step runs what the model asked for and gives the text that it is shown. The error is the host's business: the agent
// has been interrupted.
func step(ctx context.Context, ex *dsh.Executor, arguments string) (string, error) {
	var asked call
	if err := json.Unmarshal([]byte(arguments), &asked); err != nil {
		return "error: the arguments can't be read: " + err.Error(), nil
	}
	result, err := ex.Run(ctx, dsh.Command{
		Script:      asked.Command,
		Dir:         asked.Workdir,
		Timeout:     millis(asked.TimeoutMS),
		MergeStderr: true, // a model reads one text, in the order in which it was written
		Survivors:   dsh.KillSurvivors,
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "error: " + err.Error(), nil // it was not run: the model may do something about that
	}
	return render(result), nil
}

// millis is a duration of so many milliseconds, or the longest there is: a model may ask for any number.
func millis(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// render is a result as text: the output, then what else there is to know, each on a line of its own.
func render(result *dsh.Result) string {
	var text strings.Builder
	text.WriteString(strings.ToValidUTF8(result.Stdout.String(), "\uFFFD"))
	if result.Stdout.Total == 0 {
		text.WriteString("(no output)")
	}
	mark := func(format string, args ...any) {
		if !strings.HasSuffix(text.String(), "\n") {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, format, args...)
	}
	switch {
	case result.Stdout.SpillPath != "":
		mark("[output truncated; full output: %s]", result.Stdout.SpillPath)
	case result.Stdout.Omitted > 0:
		mark("[output truncated; %d bytes are lost]", result.Stdout.Omitted)
	}
	if result.TimedOut {
		mark("[timed out after %dms]", result.Timeout.Milliseconds())
	}
	switch {
	case result.Exit == dsh.ExitSignal:
		mark("[killed by signal: %s]", signalName(result.Signal))
	case result.Exit == dsh.ExitCode && result.Code != 0:
		mark("[exit code: %d]", result.Code)
	case result.Exit == dsh.ExitUnknown:
		mark("[exit code: unknown]")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// signalName is the name by which a signal is known to a shell.
func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGILL: "SIGILL",
		syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
		syscall.SIGKILL: "SIGKILL", syscall.SIGUSR1: "SIGUSR1", syscall.SIGSEGV: "SIGSEGV", syscall.SIGUSR2: "SIGUSR2",
		syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM", syscall.SIGTERM: "SIGTERM", syscall.SIGXCPU: "SIGXCPU",
		syscall.SIGXFSZ: "SIGXFSZ", syscall.SIGSYS: "SIGSYS",
	}
	if name, known := names[s]; known {
		return name
	}
	return fmt.Sprintf("%d", int(s))
}

var samples = []string{
	`{"command": "echo out; echo err >&2"}`,
	`{"command": "true"}`,
	`{"command": "ls /no/such/folder; exit 3"}`,
	`{"command": "echo begun; sleep 60 & sleep 60", "timeout_ms": 300}`,
	`{"command": "echo begun; kill -9 $$"}`,
	`{"command": "seq 1 200000 | sed s/^/line-/"}`,
	`{"command": "pwd", "workdir": "/no/such/folder"}`,
}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ex, err := dsh.New(dsh.WithMaxOutput(200))
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	calls := os.Args[1:]
	if len(calls) == 0 {
		calls = samples
	}
	for _, arguments := range calls {
		text, err := step(ctx, ex, arguments)
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Printf("> %s\n%s\n\n", arguments, text)
	}
}
