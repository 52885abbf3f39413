package dsh

import (
	"encoding"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var bothBackends = []Backend{BackendBubblewrap, BackendLandlock}

// eachBackend runs a test under each of the system's backends.
func eachBackend(t *testing.T, test func(t *testing.T, backend Backend)) {
	for _, backend := range bothBackends {
		t.Run(backend.String(), func(t *testing.T) { test(t, backend) })
	}
}

// place is where commands are confined: they may change the workspace, and not what is outside.
type place struct {
	workspace, outside string
	policy             SandboxPolicy
}

func newPlace(t *testing.T, backend Backend) place {
	t.Helper()
	// Not in /tmp, of which bubblewrap gives a command one of its own: what is outside must be seen to be outside.
	folder, err := os.MkdirTemp("/var/tmp", "dsh-go-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	p := place{workspace: folder + "/workspace", outside: folder + "/outside"}
	for _, dir := range []string{p.workspace, p.outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.policy = SandboxPolicy{Mode: ModeWorkspaceWrite, Workspace: p.workspace, Backends: []Backend{backend}}
	return p
}

// script makes a program.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestTheFactsSayWhatConfinedACommandAndHowFar(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend Backend) {
		p := newPlace(t, backend)
		result := mustRun(t, newExecutor(t, WithSandbox(p.policy)), Command{Script: "touch made; exit 3", Dir: p.workspace})
		equal(t, "code", result.Code, 3)
		equal(t, "made", exists(p.workspace+"/made"), true)
		want := &SandboxFacts{
			Mode: ModeWorkspaceWrite, Backend: backend, Enforcement: EnforcementFull, Network: NetworkFull,
			Workspace: p.workspace, Denied: DeniedNo,
		}
		if backend == BackendLandlock {
			want.Enforcement, want.Missing = EnforcementPartial, result.Sandbox.Missing
			equal(t, "missing", slices.Contains(want.Missing, "metadata"), true)
		}
		if !reflect.DeepEqual(result.Sandbox, want) {
			t.Errorf("got %+v", result.Sandbox)
		}
	})
}

func TestWithoutAPolicyThereAreNoFacts(t *testing.T) {
	ex := newExecutor(t)
	equal(t, "result", mustRun(t, ex, Command{Script: "true"}).Sandbox, nil)
	equal(t, "state", mustWait(t, mustStart(t, ex, Command{Script: "true"})).Sandbox, nil)
	spec, err := ex.Resolve(Command{Script: "true"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "spec", spec.SandboxMode, ModeDefault)
}

func TestFullAccessIsNoConfinementAndSaysSo(t *testing.T) {
	ex := newExecutor(t, WithSandbox(SandboxPolicy{Mode: ModeReadOnly}))
	result := mustRun(t, ex, Command{Script: "true", Sandbox: &SandboxPolicy{Mode: ModeDangerFullAccess}})
	want := &SandboxFacts{Mode: ModeDangerFullAccess, Network: NetworkFull, Denied: DeniedNo}
	if !reflect.DeepEqual(result.Sandbox, want) {
		t.Errorf("got %+v", result.Sandbox)
	}
}

func TestACommandIsKeptFromWhatIsOutsideAndThePathIsNamed(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend Backend) {
		p := newPlace(t, backend)
		ex := newExecutor(t, WithSandbox(p.policy))
		result := mustRun(t, ex, Command{Script: "touch " + p.outside + "/made"})
		equal(t, "success", result.Success(), false)
		equal(t, "made", exists(p.outside+"/made"), false)
		equal(t, "denied", result.Sandbox.Denied, DeniedYes)
		equal(t, "path", result.Sandbox.DeniedPath, p.outside+"/made")
		equal(t, "rule", result.Sandbox.DeniedRule, "outside the workspace (workspace-write)")
	})
}

func TestThePolicyOfACommandSaysWhatDiffersFromTheExecutors(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend Backend) {
		p := newPlace(t, backend)
		ex := newExecutor(t, WithSandbox(p.policy))
		touch := Command{Script: "touch " + p.workspace + "/made", Sandbox: &SandboxPolicy{Mode: ModeReadOnly}}
		spec, err := ex.Resolve(touch)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "spec", spec.SandboxMode, ModeReadOnly)
		result := mustRun(t, ex, touch)
		equal(t, "success", result.Success(), false)
		equal(t, "mode", result.Sandbox.Mode, ModeReadOnly)
		equal(t, "backend", result.Sandbox.Backend, backend)
		equal(t, "path", result.Sandbox.DeniedPath, p.workspace+"/made")

		touch.Sandbox = &SandboxPolicy{Network: NetworkNone}
		result = mustRun(t, ex, touch)
		equal(t, "success", result.Success(), true)
		equal(t, "mode", result.Sandbox.Mode, ModeWorkspaceWrite)
		equal(t, "network", result.Sandbox.Network, NetworkNone)
		config, err := ex.Config()
		equal(t, "config error", err, nil)
		equal(t, "executor's mode", config.Sandbox.Mode, ModeWorkspaceWrite)
	})
}

func TestACommandIsConfinedUnderAnExecutorThatConfinesNothing(t *testing.T) {
	p := newPlace(t, BackendLandlock)
	result := mustRun(t, newExecutor(t), Command{Script: "touch " + p.outside + "/made", Sandbox: &p.policy})
	equal(t, "denied", result.Sandbox.Denied, DeniedYes)
}

func TestWhatIsHiddenIsNotReadAndWhatIsWritableIsWritten(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend Backend) {
		p := newPlace(t, backend)
		for _, name := range []string{"/secret", "/plain"} {
			if err := os.WriteFile(p.outside+name, []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p.policy.Hidden = []string{"/no/such/place", p.outside + "/secret"}
		p.policy.Writable = []string{p.outside + "/plain"}
		// More texts than most policies have, of both owners.
		var env []string
		for i := range 40 {
			p.policy.Hidden = append(p.policy.Hidden, "/no/such/place/"+strconv.Itoa(i))
			env = append(env, "GO_BINDING_"+strconv.Itoa(i)+"=x")
		}
		result := mustRun(t, newExecutor(t), Command{
			Script:  "cat " + p.outside + "/secret; echo +$GO_BINDING_39 >>" + p.outside + "/plain; cat " + p.outside + "/plain",
			Sandbox: &p.policy, Env: env, DSHEnv: []string{"DSH_X=y"}, Dir: "/",
		})
		equal(t, "stdout", result.Stdout.String(), "/plain+x\n")
	})
}

// listener is a socket on the loopback interface, and its port.
func listener(t *testing.T) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	err = errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 8))
	if err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return address.(*syscall.SockaddrInet4).Port
}

func TestANetworkIsFullOrNoneOrTheCommandsOwn(t *testing.T) {
	connect := "(exec 3<>/dev/tcp/127.0.0.1/" + strconv.Itoa(listener(t)) + ") 2>/dev/null && echo connected; true"
	eachBackend(t, func(t *testing.T, backend Backend) {
		p := newPlace(t, backend)
		ex := newExecutor(t, WithSandbox(p.policy))
		equal(t, "full", mustRun(t, ex, Command{Script: connect}).Stdout.String(), "connected\n")
		none := mustRun(t, ex, Command{Script: connect, Sandbox: &SandboxPolicy{Network: NetworkNone}})
		equal(t, "none", none.Stdout.String(), "")
		equal(t, "network", none.Sandbox.Network, NetworkNone)
		if backend == BackendBubblewrap {
			own := mustRun(t, ex, Command{Script: connect, Sandbox: &SandboxPolicy{Network: NetworkLoopback}})
			equal(t, "loopback", own.Stdout.String(), "")
			equal(t, "network", own.Sandbox.Network, NetworkLoopback)
		}
	})
}

func TestWhatNoBackendCanDoIsAnErrorAndNothingRuns(t *testing.T) {
	p := newPlace(t, BackendLandlock)
	p.policy.Network = NetworkLoopback
	ex := newExecutor(t, WithSandbox(p.policy))
	command := Command{Script: "touch " + p.workspace + "/ran"}
	result, err := ex.Run(patient(t), command)
	isError(t, "run", err, ErrSandboxUnavailable)
	equal(t, "result", result, nil)
	var failure *Error
	if !errors.As(err, &failure) || failure.Stage != "sandbox" || !strings.Contains(failure.Message, "network loopback") {
		t.Errorf("got %#v", err)
	}
	_, err = ex.Start(command)
	isError(t, "start", err, ErrSandboxUnavailable)
	equal(t, "ran", exists(p.workspace+"/ran"), false)
	// It is the policy that can't be had, not the executor.
	command.Sandbox = &SandboxPolicy{Network: NetworkFull}
	equal(t, "code", mustRun(t, ex, command).Code, 0)
}

func TestAPolicyThatCannotBeUsedIsRefusedByFieldAndValue(t *testing.T) {
	ex := newExecutor(t)
	runner := &Runner{Command: []string{"x"}, Failures: []string{"y"}}
	for _, c := range []struct {
		words  string
		policy SandboxPolicy
	}{
		{"sandbox.mode 9", SandboxPolicy{Mode: 9}},
		{"sandbox.network 9", SandboxPolicy{Network: 9}},
		{"sandbox.backends[1] 9", SandboxPolicy{Backends: []Backend{BackendLandlock, 9}}},
		{"sandbox.backends[0] 0", SandboxPolicy{Backends: []Backend{BackendNone}}},
		{"sandbox.backends[1] landlock", SandboxPolicy{Backends: []Backend{BackendLandlock, BackendLandlock}}},
		{"sandbox.backends: names 17, of 16 at most", SandboxPolicy{Backends: make([]Backend, 17)}},
		{"sandbox.backends: names the runner", SandboxPolicy{Backends: []Backend{BackendRunner}}},
		{"sandbox.git_worktree 3: is neither", SandboxPolicy{GitWorktree: 3}},
		{`sandbox.workspace "relative"`, SandboxPolicy{Workspace: "relative"}},
		{`sandbox.workspace "/no/such/place"`, SandboxPolicy{Workspace: "/no/such/place"}},
		{`sandbox.workspace "/a\x00b": holds`, SandboxPolicy{Workspace: "/a\x00b"}},
		{`sandbox.writable[1] "x"`, SandboxPolicy{Writable: []string{"/tmp", "x"}}},
		{`sandbox.writable[0] "/no/such/place"`, SandboxPolicy{Mode: ModeWorkspaceWrite, Writable: []string{"/no/such/place"}}},
		{`sandbox.writable "/a\x00b": holds`, SandboxPolicy{Writable: []string{"/a\x00b"}}},
		{`sandbox.hidden[0] ""`, SandboxPolicy{Hidden: []string{""}}},
		{`sandbox.hidden "/a\x00b": holds`, SandboxPolicy{Hidden: []string{"/a\x00b"}}},
		{"sandbox.runner: names no program", SandboxPolicy{Runner: &Runner{}}},
		{"sandbox.runner: names no program", SandboxPolicy{Runner: &Runner{Command: []string{""}, Failures: runner.Failures}}},
		{"sandbox.runner_failures: is empty", SandboxPolicy{Runner: &Runner{Command: runner.Command}}},
		{`sandbox.runner "a\x00": holds`, SandboxPolicy{Runner: &Runner{Command: []string{"a\x00"}, Failures: runner.Failures}}},
		{`sandbox.runner_failures[0] " "`, SandboxPolicy{Runner: &Runner{Command: runner.Command, Failures: []string{" "}}}},
		{`sandbox.runner_failures "y\x00": holds a NUL`, SandboxPolicy{Runner: &Runner{Command: runner.Command, Failures: []string{"y\x00"}}}},
	} {
		command := Command{Script: "true", Sandbox: &c.policy}
		_, run := ex.Run(patient(t), command)
		_, start := ex.Start(command)
		for _, err := range []error{run, start} {
			isError(t, c.words, err, ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v, want %s", err, c.words)
			}
		}
	}
	stats, err := ex.Stats()
	equal(t, "stats error", err, nil)
	equal(t, "ran", stats.Ended+int64(stats.Live), 0)

	_, err = New(WithSandbox(SandboxPolicy{Workspace: "relative"}))
	isError(t, "new", err, ErrInvalid)
	if err := ex.Configure(WithSandbox(SandboxPolicy{Mode: ModeReadOnly})); err != nil {
		t.Fatal(err)
	}
	isError(t, "configure", ex.Configure(WithSandbox(SandboxPolicy{Hidden: []string{"x"}})), ErrInvalid)
	config, _ := ex.Config()
	equal(t, "the last good mode", config.Sandbox.Mode, ModeReadOnly)
}

func TestEveryFieldOfAPolicyComesBackInTheConfig(t *testing.T) {
	policy := SandboxPolicy{
		Mode: ModeWorkspaceWrite, Workspace: "/usr", Writable: []string{"/a", "/b"}, Hidden: []string{"/c", "/d", "/e"},
		Network: NetworkNone, Backends: []Backend{BackendRunner, BackendLandlock, BackendSeatbelt},
		Runner: &Runner{Command: []string{"f", "g", "h"}, Failures: []string{"i", "j"}}, GitWorktree: GitWorktreeOn,
	}
	for i := range reflect.TypeFor[SandboxPolicy]().NumField() {
		if reflect.ValueOf(policy).Field(i).IsZero() {
			t.Errorf("the test says nothing of %s", reflect.TypeFor[SandboxPolicy]().Field(i).Name)
		}
	}
	ex := newExecutor(t, WithEnvAllow("K"), WithSandbox(policy), WithEnvDeny("L", "M"))
	config, err := ex.Config()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(config.Sandbox, &policy) {
		t.Errorf("got %+v", config.Sandbox)
	}
	equal(t, "globs", strings.Join(append(config.EnvAllow, config.EnvDeny...), " "), "K L M")
	equal(t, "configure", ex.Configure(WithConfig(config)), nil)
	again, _ := ex.Config()
	equal(t, "the same", reflect.DeepEqual(again, config), true)
	equal(t, "configure", ex.Configure(), nil)
	again, _ = ex.Config()
	equal(t, "no policy", again.Sandbox, nil)
}

func TestACallersOwnRunnerStandsBeforeTheShellAndKnowsThePolicy(t *testing.T) {
	p := newPlace(t, BackendRunner)
	program := t.TempDir() + "/runner"
	script(t, program, `echo "$1 $DSH_SANDBOX_MODE $DSH_SANDBOX_NETWORK $DSH_SANDBOX_WRITABLE"; shift; exec "$@"`)
	p.policy.Runner = &Runner{Command: []string{program, "--flag"}, Failures: []string{"my-runner: fatal"}}
	p.policy.Network = NetworkNone
	p.policy.Writable = []string{p.outside}
	ex := newExecutor(t, WithSandbox(p.policy))
	result := mustRun(t, ex, Command{Script: "echo done; exit 5"})
	text := strings.Replace(result.Stdout.String(), p.outside+":"+p.workspace, p.workspace+":"+p.outside, 1)
	equal(t, "stdout", text, "--flag workspace-write none "+p.workspace+":"+p.outside+"\ndone\n")
	equal(t, "code", result.Code, 5)
	equal(t, "backend", result.Sandbox.Backend, BackendRunner)

	script(t, program, "echo 'My-Runner: FATAL: no luck' >&2; exit 7")
	_, err := newExecutor(t, WithSandbox(p.policy)).Run(patient(t), Command{Script: "true"})
	isError(t, "run", err, ErrSandboxUnavailable)
	if err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("the message has nothing of the runner's: %v", err)
	}
}

func TestABackendThatBreaksIsAnErrorOfARunAndAFactOfAProcess(t *testing.T) {
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, BackendBubblewrap)
	broken := p.outside + "/broken"
	script(t, p.outside+"/bwrap", "[ -e "+broken+" ] && { echo 'bwrap: broken now' >&2; exit 1; }\nexec "+real+` "$@"`)
	t.Setenv("PATH", p.outside+":"+os.Getenv("PATH"))
	ex := newExecutor(t, WithSandbox(p.policy))
	command := Command{Script: "touch " + p.workspace + "/ran"}
	equal(t, "code", mustRun(t, ex, Command{Script: "exit 4"}).Code, 4)
	if err := os.WriteFile(broken, nil, 0o644); err != nil {
		t.Fatal(err)
	}

	result, err := ex.Run(patient(t), command)
	equal(t, "result", result, nil)
	isError(t, "run", err, ErrSandboxUnavailable)
	if err == nil || !strings.Contains(err.Error(), "broken now") {
		t.Errorf("the message has nothing of the backend's: %v", err)
	}
	facts := mustWait(t, mustStart(t, ex, command)).Sandbox
	if !strings.Contains(facts.RunnerFailed, "broken now") {
		t.Errorf("got %+v", facts)
	}
	equal(t, "ran", exists(p.workspace+"/ran"), false)
}

func TestAConfinedProcessIsReadAndKilled(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend Backend) {
		p := newPlace(t, backend)
		ex := newExecutor(t, WithSandbox(p.policy))
		process := mustStart(t, ex, Command{Script: "touch " + p.outside + "/made; echo up; sleep 600"})
		if _, err := process.Stdout().Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		state, err := process.State()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "mode", state.Sandbox.Mode, ModeWorkspaceWrite)
		equal(t, "backend", state.Sandbox.Backend, backend)
		equal(t, "denied", state.Sandbox.Denied, DeniedUnknown)
		killed, err := process.Kill()
		equal(t, "kill", err, nil)
		equal(t, "killed", killed, true)
		equal(t, "status", mustWait(t, process).Status, StatusKilled)
		within(t, "the end of the tree", process.Quiescent())
		equal(t, "made", exists(p.outside+"/made"), false)
	})
}

func TestALinkedWorktreeIsCommittedToOnlyWhenThatIsAllowed(t *testing.T) {
	p := newPlace(t, BackendLandlock)
	// What git makes of a main repository in "outside" and a worktree of it.
	own := p.outside + "/.git/worktrees/w"
	for path, text := range map[string]string{
		p.outside + "/.git/HEAD":         "ref: refs/heads/main\n",
		p.outside + "/.git/config":       "",
		p.outside + "/.git/objects/pack": "",
		p.outside + "/.git/refs/heads/m": "",
		own + "/HEAD":                    "ref: refs/heads/w\n",
		own + "/commondir":               "../..\n",
		own + "/gitdir":                  p.workspace + "/.git\n",
		p.workspace + "/.git":            "gitdir: " + own + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.policy.GitWorktree = GitWorktreeOn
	ex := newExecutor(t, WithSandbox(p.policy))
	commit := Command{Script: "echo x >" + own + "/index && echo x >" + p.outside + "/.git/objects/x"}
	equal(t, "allowed", mustRun(t, ex, commit).Success(), true)
	equal(t, "config", mustRun(t, ex, Command{Script: "echo x >" + p.outside + "/.git/config"}).Success(), false)
	commit.Sandbox = &SandboxPolicy{GitWorktree: GitWorktreeOff}
	equal(t, "not allowed", mustRun(t, ex, commit).Success(), false)
}

func TestWiderModesAreNamedTheNarrowestFirst(t *testing.T) {
	for mode, want := range map[SandboxMode][]SandboxMode{
		ModeDefault:          nil,
		ModeReadOnly:         {ModeWorkspaceWrite, ModeDangerFullAccess},
		ModeWorkspaceWrite:   {ModeDangerFullAccess},
		ModeDangerFullAccess: nil,
		99:                   nil,
	} {
		if got := mode.Wider(); !slices.Equal(got, want) {
			t.Errorf("%v: got %v", mode, got)
		}
	}
}

func TestTheTermsOfAPolicyAreReadByNameAndWrongNamesAreRefused(t *testing.T) {
	isNamed(t, ModeReadOnly, "sandbox.mode", "read-only")
	isNamed(t, ModeWorkspaceWrite, "sandbox.mode", "workspace-write")
	isNamed(t, ModeDangerFullAccess, "sandbox.mode", "danger-full-access")
	isNamed(t, NetworkNone, "sandbox.network", "none")
	isNamed(t, NetworkLoopback, "sandbox.network", "loopback")
	isNamed(t, NetworkFull, "sandbox.network", "full")
	isNamed(t, BackendBubblewrap, "sandbox.backends", "bubblewrap")
	isNamed(t, BackendLandlock, "sandbox.backends", "landlock")
	isNamed(t, BackendSeatbelt, "sandbox.backends", "seatbelt")
	isNamed(t, BackendRunner, "sandbox.backends", "runner")
	isNamed(t, GitWorktreeOn, "sandbox.git_worktree", "on")
	isNamed(t, GitWorktreeOff, "sandbox.git_worktree", "off")
}

// isNamed checks the name of a constant, in both directions.
func isNamed[T interface {
	comparable
	fmt.Stringer
	encoding.TextMarshaler
}, P interface {
	*T
	encoding.TextUnmarshaler
}](t *testing.T, constant T, field, name string) {
	t.Helper()
	equal(t, "name", constant.String(), name)
	text, err := constant.MarshalText()
	equal(t, "text", string(text), name)
	equal(t, "error", err, nil)
	var got, zero T
	equal(t, "error", P(&got).UnmarshalText(text), nil)
	equal(t, name, got, constant)
	err = P(&got).UnmarshalText([]byte("read-onyl"))
	isError(t, "wrong name", err, ErrInvalid)
	equal(t, "after a wrong name", got, constant)
	if words := field + ` "read-onyl": is none of `; !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
	equal(t, "error", P(&got).UnmarshalText(nil), nil)
	equal(t, "no text", got, zero)
}

func TestTheDoctorReportsEachBackendWithWhatWasTried(t *testing.T) {
	report, err := SandboxDoctor()
	if err != nil {
		t.Fatal(err)
	}
	var backends []Backend
	for _, b := range report.Backends {
		backends = append(backends, b.Backend)
		if !b.Usable || !b.Network || b.Errno != 0 || b.Remedy != "" || b.Tried == "" || b.Message == "" {
			t.Errorf("got %+v", b)
		}
	}
	equal(t, "backends", slices.Equal(backends, bothBackends), true)
	equal(t, "version", report.Backends[1].Version, int(FeatureLandlock.Available()))
	equal(t, "bubblewrap", FeatureBubblewrap.Available(), 1)
	if len(report.Facts) == 0 || !strings.Contains(report.Facts[0], "=") {
		t.Errorf("facts: %q", report.Facts)
	}
	if text := report.String(); !strings.Contains(text, "bubblewrap: works") {
		t.Errorf("text: %s", text)
	}
}

func TestTheDoctorSaysWhyABackendDoesNotWorkAndWhatWouldMendIt(t *testing.T) {
	folder := t.TempDir()
	script(t, folder+"/bwrap", "echo 'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted' >&2; exit 1")
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	report, err := SandboxDoctor()
	if err != nil {
		t.Fatal(err)
	}
	b := report.Backends[0]
	if b.Usable || !strings.Contains(b.Message, "RTM_NEWADDR") || b.Remedy == "" {
		t.Errorf("got %+v", b)
	}
}

func TestConfinedCommandsLeaveNothingBehind(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend Backend) {
		p := newPlace(t, backend)
		ex := newExecutor(t, WithSandbox(p.policy))
		warm(t, ex)
		eventuallyAfterGC(t, "no handle to be left of other tests", func() bool { return handles.Load() == 0 })
		fds, before := descriptors(t), threads(t)
		var group sync.WaitGroup
		for range 2 {
			group.Add(1)
			go func() {
				defer group.Done()
				for range 10 {
					result := mustRun(t, ex, Command{Script: "mktemp >/dev/null; exit 2", Timeout: time.Minute})
					equal(t, "code", result.Code, 2)
				}
			}()
		}
		group.Wait()
		eventually(t, "nothing to be left", func() bool { stats, _ := ex.Stats(); return stats.Live == 0 })
		eventually(t, "no handle to be left", func() bool { return handles.Load() == 0 })
		eventually(t, "the descriptors to be closed", func() bool { return descriptors(t) <= fds })
		eventually(t, "the threads to end", func() bool { return threads(t) <= before+fewThreads() })
	})
}
