package dsh

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAnErrorHasCodeErrnoStageAndMessage(t *testing.T) {
	ex := newExecutor(t)
	_, err := ex.Run(patient(t), Command{Script: "true", Dir: "/no/such/place"})
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %#v", err)
	}
	equal(t, "code", failure.Code, ErrWorkdirMissing)
	equal(t, "errno", failure.Errno, syscall.ENOENT)
	equal(t, "stage", failure.Stage, "workdir")
	if !strings.Contains(failure.Message, "/no/such/place") {
		t.Errorf("the message does not name the path: %s", failure.Message)
	}
	equal(t, "text", err.Error(), "dsh: "+failure.Message)
	isError(t, "run", err, ErrWorkdirMissing)
	isError(t, "run", err, syscall.ENOENT)
	isError(t, "run", err, fs.ErrNotExist)
	if errors.Is(err, ErrWorkdirDenied) {
		t.Error("it is another code too")
	}
}

func TestWhatCannotBeRunIsAnErrorByName(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ex := newExecutor(t)
	for name, c := range map[string]struct {
		command Command
		code    Code
	}{
		"NUL in the command":    {Command{Script: "echo\x00x"}, ErrCommandNUL},
		"a file as directory":   {Command{Dir: file}, ErrWorkdirNotDir},
		"a loop of links":       {Command{Dir: loopOfLinks(t)}, ErrWorkdirUnusable},
		"a name that is none":   {Command{Env: []string{"=x"}}, ErrEnvName},
		"a reserved name":       {Command{Env: []string{"DSH_X=1"}}, ErrEnvReserved},
		"an unreserved name":    {Command{DSHEnv: []string{"X=1"}}, ErrEnvName},
		"a huge environment":    {Command{Env: []string{"HUGE=" + strings.Repeat("x", 200_000)}}, ErrEnvTooBig},
		"unknown policy":        {Command{Survivors: 99}, ErrInvalid},
		"negative timeout":      {Command{Timeout: -time.Second}, ErrInvalid},
		"negative size":         {Command{MaxStdout: -1}, ErrInvalid},
		"NUL in the directory":  {Command{Dir: "/tmp\x00/x"}, ErrInvalid},
		"NUL in a variable":     {Command{Env: []string{"A=b\x00c"}}, ErrInvalid},
		"NUL in a DSH variable": {Command{DSHEnv: []string{"DSH_A=b\x00c"}}, ErrInvalid},
	} {
		for verb, call := range map[string]func(Command) error{
			"run":   func(c Command) error { _, err := ex.Run(patient(t), c); return err },
			"start": func(c Command) error { _, err := ex.Start(c); return err },
		} {
			isError(t, verb+" with "+name, call(c.command), c.code)
		}
	}
	stats, err := ex.Stats()
	equal(t, "stats error", err, nil)
	equal(t, "ended", stats.Ended, 0)
	equal(t, "live", stats.Live, 0)
}

// loopOfLinks is a path that leads nowhere.
func loopOfLinks(t *testing.T) string {
	path := t.TempDir() + "/loop"
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAMessageNamesTheFieldAndTheValueButNoSecret(t *testing.T) {
	ex := newExecutor(t)
	for want, command := range map[string]Command{
		"timeout -1s: is negative":            {Timeout: -time.Second},
		"max_stdout -5: is negative":          {MaxStdout: -5},
		`dir "/tmp\x00": holds a NUL byte`:    {Dir: "/tmp\x00"},
		`env "API_KEY": holds a NUL byte`:     {Env: []string{"API_KEY=hunter2\x00"}},
		`dsh_env "DSH_K": holds a NUL byte`:   {DSHEnv: []string{"DSH_K=hunter2\x00"}},
		`env "A\x00B": holds a NUL byte`:      {Env: []string{"A\x00B=hunter2"}},
		"command: holds a NUL byte at offset": {Script: "abc\x00"},
	} {
		_, err := ex.Run(patient(t), command)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEveryCodeHasAMeaning(t *testing.T) {
	seen := map[string]Code{}
	for code := ErrNull; code >= ErrPanic; code-- {
		text := code.Error()
		if other, taken := seen[text]; taken || text == "" || text == Code(-9999).Error() {
			t.Errorf("code %d means %q, as %d does", code, text, other)
		}
		seen[text] = code
	}
	equal(t, "codes", len(seen), 22)
}
