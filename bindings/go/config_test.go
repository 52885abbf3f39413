package dsh

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreFilledIn(t *testing.T) {
	config, err := newExecutor(t).Config()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(config.Shell, "/") || config.SpillDir == "" {
		t.Errorf("shell %q, spill dir %q", config.Shell, config.SpillDir)
	}
	want := Config{
		Shell:         config.Shell,
		SpillDir:      config.SpillDir,
		Timeout:       2 * time.Minute,
		MaxTimeout:    10 * time.Minute,
		MaxOutput:     64_000,
		MaxSpill:      64 << 20,
		MaxTotalSpill: 1 << 30,
		Grace:         3 * time.Second,
		Drain:         3 * time.Second,
	}
	if !reflect.DeepEqual(config, want) {
		t.Errorf("got %+v", config)
	}
}

func TestEveryOptionArrives(t *testing.T) {
	dir := t.TempDir()
	ex := newExecutor(t, WithDir("/usr"), WithShell("/bin/bash"), WithSpillDir(dir), WithEnvAllow("A_*", "B"),
		WithEnvAllow("C"), WithEnvDeny("D?"), WithTimeout(time.Second), WithMaxTimeout(time.Hour), WithMaxOutput(1000),
		WithMaxSpill(2000), WithMaxTotalSpill(3000), WithGrace(400*time.Millisecond), WithDrain(50*time.Millisecond),
		WithKeep(KeepHeadTail), WithSandbox(SandboxPolicy{Network: NetworkNone}),
		WithoutInheritedEnv(), WithoutGuard(), WithSpillFilesKept())
	config, err := ex.Config()
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Dir: "/usr", Shell: "/bin/bash", SpillDir: dir, EnvAllow: []string{"A_*", "B", "C"}, EnvDeny: []string{"D?"},
		Timeout: time.Second, MaxTimeout: time.Hour, MaxOutput: 1000, MaxSpill: 2000, MaxTotalSpill: 3000,
		Grace: 400 * time.Millisecond, Drain: 50 * time.Millisecond, Keep: KeepHeadTail,
		Sandbox:      &SandboxPolicy{Mode: ModeReadOnly, Network: NetworkNone, GitWorktree: GitWorktreeOff},
		NoInheritEnv: true, NoGuard: true, KeepSpillFiles: true,
	}
	if !reflect.DeepEqual(config, want) {
		t.Errorf("got %+v", config)
	}
}

func TestEveryFieldOfAConfigIsPassedOn(t *testing.T) {
	// A field that is added and forgotten would stay at its zero value on the way to C and back.
	ex := newExecutor(t)
	config := Config{
		Dir: "/usr", Shell: "/bin/bash", EnvAllow: []string{"A"}, EnvDeny: []string{"B"}, Timeout: 1e6, MaxTimeout: 2e6,
		MaxOutput: 3, MaxSpill: 4, MaxTotalSpill: 5, Grace: 6e6, Drain: 7e6, Keep: KeepHeadTail,
		Sandbox:      &SandboxPolicy{Mode: ModeReadOnly, Network: NetworkNone, GitWorktree: GitWorktreeOff},
		NoInheritEnv: true, NoGuard: true, KeepSpillFiles: true,
	}
	first, err := ex.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.SpillDir = first.SpillDir
	if err := ex.Configure(WithConfig(config)); err != nil {
		t.Fatal(err)
	}
	got, err := ex.Config()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, config) {
		t.Errorf("got %+v, want %+v", got, config)
	}
	for i := range reflect.TypeFor[Config]().NumField() {
		if reflect.ValueOf(got).Field(i).IsZero() {
			t.Errorf("the test says nothing of %s", reflect.TypeFor[Config]().Field(i).Name)
		}
	}
}

func TestConfigureReplacesAllBudgetsAndKeepsTheLastGoodOnes(t *testing.T) {
	ex := newExecutor(t, WithGrace(time.Second))
	if err := ex.Configure(WithTimeout(7 * time.Second)); err != nil {
		t.Fatal(err)
	}
	config, _ := ex.Config()
	equal(t, "timeout", config.Timeout, 7*time.Second)
	equal(t, "grace", config.Grace, 3*time.Second)
	isError(t, "shell", ex.Configure(WithShell("/no/shell")), ErrShellMissing)
	isError(t, "grace", ex.Configure(WithGrace(-1)), ErrInvalid)
	isError(t, "spill dir", ex.Configure(WithSpillDir("/elsewhere")), ErrInvalid)
	config, _ = ex.Config()
	equal(t, "timeout", config.Timeout, 7*time.Second)
	if err := ex.Configure(WithConfig(config), WithGrace(time.Minute)); err != nil {
		t.Fatal(err)
	}
	config, _ = ex.Config()
	equal(t, "timeout", config.Timeout, 7*time.Second)
	equal(t, "grace", config.Grace, time.Minute)
}

func TestAnExecutorThatCannotWorkIsNotMade(t *testing.T) {
	for name, c := range map[string]struct {
		option Option
		code   Code
		words  string
	}{
		"missing shell":    {WithShell("/no/shell"), ErrShellMissing, "/no/shell"},
		"negative timeout": {WithTimeout(-1), ErrInvalid, "timeout -1ns"},
		"negative cap":     {WithMaxTimeout(-1), ErrInvalid, "max_timeout"},
		"negative drain":   {WithDrain(-1), ErrInvalid, "drain"},
		"negative output":  {WithMaxOutput(-1), ErrInvalid, "max_output -1"},
		"negative spill":   {WithMaxSpill(-1), ErrInvalid, "max_spill -1"},
		"negative total":   {WithMaxTotalSpill(-1), ErrInvalid, "max_total_spill -1"},
		"unknown keep":     {WithKeep(9), ErrInvalid, "9"},
		"NUL":              {WithDir("/\x00"), ErrInvalid, "dir"},
		"NUL in a glob":    {WithEnvAllow("A\x00"), ErrInvalid, "env_allow"},
	} {
		ex, err := New(c.option)
		isError(t, name, err, c.code)
		if ex != nil || err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: got %v and %v", name, ex, err)
		}
	}
}

func TestOptionsThatAreUsedTwiceDoNotShareMemory(t *testing.T) {
	base := []Option{WithEnvAllow("A", "B", "C")}
	one := configOf(append(base, WithEnvAllow("D")))
	two := configOf(append(base, WithEnvAllow("E")))
	equal(t, "one", strings.Join(one.EnvAllow, " "), "A B C D")
	equal(t, "two", strings.Join(two.EnvAllow, " "), "A B C E")
}

func TestResolveTellsWhatWouldRun(t *testing.T) {
	t.Setenv("GO_BINDING_API_KEY", "secret")
	ex := newExecutor(t, WithDir("/usr"), WithMaxTimeout(time.Minute), WithGrace(time.Second), WithDrain(2*time.Second))
	spec, err := ex.Resolve(Command{
		Script: "echo hello", Dir: "lib", Timeout: time.Hour, MaxStdout: 5, MergeStderr: true, Survivors: KillSurvivors,
		Tag: 7, Input: []byte("x"), Env: []string{"A=b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(spec.Scrubbed, " "), "GO_BINDING_API_KEY") || !strings.HasSuffix(spec.Shell, "/bash") {
		t.Errorf("scrubbed %v, shell %q", spec.Scrubbed, spec.Shell)
	}
	spec.Scrubbed, spec.Shell = nil, ""
	want := &Spec{
		Script: "echo hello", Dir: "/usr/lib", Timeout: time.Minute, MaxStdout: 5, MaxOutput: 64_000, Grace: time.Second,
		Drain: 2 * time.Second, MergeStderr: true, Survivors: KillSurvivors, Tag: 7,
	}
	if !reflect.DeepEqual(spec, want) {
		t.Errorf("got %+v", spec)
	}
	_, err = ex.Resolve(Command{Script: "\x00"})
	isError(t, "NUL", err, ErrCommandNUL)
	stats, _ := ex.Stats()
	equal(t, "started", stats.Ended+int64(stats.Live), 0)
}
