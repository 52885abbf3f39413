package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"libdsh.org/dsh"
)

func TestEachEndingIsShownAsAModelExpectsIt(t *testing.T) {
	ex, err := dsh.New(dsh.WithMaxOutput(100))
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	for arguments, want := range map[string]string{
		`{"command": "echo out; echo err >&2"}`:                  "out\nerr",
		`{"command": "true"}`:                                    "(no output)",
		`{"command": "printf half; exit 3"}`:                     "half\n[exit code: 3]",
		`{"command": "exit 4"}`:                                  "(no output)\n[exit code: 4]",
		`{"command": "kill -9 $$"}`:                              "(no output)\n[killed by signal: SIGKILL]",
		`{"command": "echo a; sleep 60", "timeout_ms": 1000}`:    "a\n[timed out after 1000ms]\n[killed by signal: SIGTERM]",
		`{"command": "printf '\\377'"}`:                          "\uFFFD",
		`{"command": "true", "timeout_ms": 9223372036854775807}`: "(no output)",
		`{"command": "pwd", "workdir": "/usr"}`:                  "/usr",
	} {
		got, err := step(context.Background(), ex, arguments)
		if err != nil || got != want {
			t.Errorf("%s: got %q and %v, want %q", arguments, got, err, want)
		}
	}
	for arguments, want := range map[string]string{
		`{"command": "pwd", "workdir": "/nowhere"}`: "error: dsh: workdir \"/nowhere\"",
		`{"command": 7}`:                        "error: the arguments",
		`{"command": "true", "timeout_ms": -1}`: "error: dsh: timeout -1ms: is negative",
	} {
		got, err := step(context.Background(), ex, arguments)
		if err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q and %v, want %q...", arguments, got, err, want)
		}
	}
}

func TestALongOutputNamesTheFileThatHasAllOfIt(t *testing.T) {
	ex, err := dsh.New(dsh.WithMaxOutput(100))
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	text, err := step(context.Background(), ex, `{"command": "seq 1 1000"}`)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(text, "\n1000\n[output truncated; full output: ")
	file, err := os.ReadFile(strings.TrimSuffix(after, "]"))
	if !found || err != nil || !strings.HasPrefix(string(file), "1\n2\n") {
		t.Errorf("got %q and %v", text, err)
	}
}

func TestAnInterruptedStepIsAnError(t *testing.T) {
	ex, err := dsh.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := step(ctx, ex, `{"command": "true"}`); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}
