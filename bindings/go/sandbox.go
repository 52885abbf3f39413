package dsh

// #include "shim.h"
import "C"

import (
	"slices"
	"strings"
	"unsafe"
)

// SandboxMode says how much of the file system a command may change. Each mode is strictly wider than the one before it.
type SandboxMode uint32

const (
	// ModeDefault: in a command's policy what the executor's says, and there ModeReadOnly.
	ModeDefault SandboxMode = C.DSH_SANDBOX_DEFAULT
	// ModeReadOnly: nothing may be changed but /dev/null and a private directory for temporary files, in TMPDIR.
	ModeReadOnly SandboxMode = C.DSH_SANDBOX_READ_ONLY
	// ModeWorkspaceWrite: that, and the workspace with everything below it, and further writable paths.
	ModeWorkspaceWrite SandboxMode = C.DSH_SANDBOX_WORKSPACE_WRITE
	// ModeDangerFullAccess: no confinement.
	ModeDangerFullAccess SandboxMode = C.DSH_SANDBOX_DANGER_FULL_ACCESS
)

var modeNames = []string{"default", "read-only", "workspace-write", "danger-full-access"}

// String gives "default", "read-only", "workspace-write" or "danger-full-access".
func (m SandboxMode) String() string {
	return nameOf(m, modeNames...)
}

// MarshalText gives the name.
func (m SandboxMode) MarshalText() ([]byte, error) {
	return []byte(m.String()), nil
}

// UnmarshalText takes a name, so that a mode can be read from JSON or a flag; no text is ModeDefault. Any other text is
// [ErrInvalid].
func (m *SandboxMode) UnmarshalText(text []byte) error {
	return named(m, "sandbox.mode", text, modeNames)
}

// Wider gives the modes that are strictly wider than this one, the narrowest first: what could be asked for when a
// command was denied something. Nothing is wider than ModeDangerFullAccess, or than ModeDefault, which is no mode yet.
func (m SandboxMode) Wider() []SandboxMode {
	var wider []SandboxMode
	for mode := ModeReadOnly; mode <= ModeDangerFullAccess; mode++ {
		if C.dsh_sandbox_is_wider(C.dsh_sandbox_mode_t(mode), C.dsh_sandbox_mode_t(m)) != 0 {
			wider = append(wider, mode)
		}
	}
	return wider
}

// Network says how much of the network a command may use.
type Network uint32

const (
	// NetworkDefault: in a command's policy what the executor's says, and there NetworkFull.
	NetworkDefault Network = C.DSH_NETWORK_DEFAULT
	// NetworkFull: whatever the host can reach.
	NetworkFull Network = C.DSH_NETWORK_FULL
	// NetworkLoopback: a loopback interface of the command's own: its processes reach each other, and nobody else.
	// Bubblewrap only.
	NetworkLoopback Network = C.DSH_NETWORK_LOOPBACK
	// NetworkNone: no sockets but those of the file system (AF_UNIX), which can be reached as far as its permissions let
	// them, and of the kernel's own services (AF_NETLINK).
	NetworkNone Network = C.DSH_NETWORK_NONE
)

var networkNames = []string{"default", "full", "loopback", "none"}

// String gives "default", "full", "loopback" or "none".
func (n Network) String() string {
	return nameOf(n, networkNames...)
}

// MarshalText gives the name.
func (n Network) MarshalText() ([]byte, error) {
	return []byte(n.String()), nil
}

// UnmarshalText takes a name; no text is NetworkDefault. Any other text is [ErrInvalid].
func (n *Network) UnmarshalText(text []byte) error {
	return named(n, "sandbox.network", text, networkNames)
}

// Backend is what carries a confinement out.
type Backend uint32

const (
	// BackendNone: nothing, under full access.
	BackendNone Backend = C.DSH_BACKEND_NONE
	// BackendBubblewrap: bwrap: namespaces, so that what is forbidden is not even there (Linux).
	BackendBubblewrap Backend = C.DSH_BACKEND_BUBBLEWRAP
	// BackendLandlock: Landlock, in the command itself and without a helper program (Linux 5.13).
	BackendLandlock Backend = C.DSH_BACKEND_LANDLOCK
	// BackendSeatbelt: sandbox-exec (macOS). It has never been run.
	BackendSeatbelt Backend = C.DSH_BACKEND_SEATBELT
	// BackendRunner: the caller's own program, see [Runner].
	BackendRunner Backend = C.DSH_BACKEND_RUNNER
)

var backendNames = []string{"none", "bubblewrap", "landlock", "seatbelt", "runner"}

// String gives "none", "bubblewrap", "landlock", "seatbelt" or "runner".
func (b Backend) String() string {
	return nameOf(b, backendNames...)
}

// MarshalText gives the name.
func (b Backend) MarshalText() ([]byte, error) {
	return []byte(b.String()), nil
}

// UnmarshalText takes a name; no text is BackendNone. Any other text is [ErrInvalid].
func (b *Backend) UnmarshalText(text []byte) error {
	return named(b, "sandbox.backends", text, backendNames)
}

// GitWorktree says whether a command may commit in a linked git worktree.
type GitWorktree uint32

const (
	// GitWorktreeDefault: in a command's policy what the executor's says, and there GitWorktreeOff.
	GitWorktreeDefault GitWorktree = 0
	// GitWorktreeOn: a workspace that is a linked git worktree may change those parts of the main repository that a
	// commit needs: not its hooks, and not its configuration.
	GitWorktreeOn GitWorktree = C.DSH_SANDBOX_GIT_WORKTREE
	// GitWorktreeOff: it may not.
	GitWorktreeOff GitWorktree = C.DSH_SANDBOX_NO_GIT_WORKTREE
)

var gitWorktreeNames = []string{"default", "on", "off"}

// String gives "default", "on" or "off".
func (g GitWorktree) String() string {
	return nameOf(g, gitWorktreeNames...)
}

// MarshalText gives the name.
func (g GitWorktree) MarshalText() ([]byte, error) {
	return []byte(g.String()), nil
}

// UnmarshalText takes a name; no text is GitWorktreeDefault. Any other text is [ErrInvalid].
func (g *GitWorktree) UnmarshalText(text []byte) error {
	return named(g, "sandbox.git_worktree", text, gitWorktreeNames)
}

// Runner is a sandbox of the caller's own: a program that is run as "COMMAND... SHELL -c SCRIPT". It finds the policy in
// DSH_SANDBOX_MODE, DSH_SANDBOX_WORKSPACE, DSH_SANDBOX_WRITABLE (a list with ":") and DSH_SANDBOX_NETWORK, and is trusted
// to enforce it.
type Runner struct {
	// Command is the program (absolute, or found in PATH) and its first arguments. Required.
	Command []string
	// Failures: a line on stderr that contains one of these, whatever the case, says together with a non-zero exit that
	// the runner itself failed and the command did not run. Required.
	Failures []string
}

// SandboxPolicy is what a confined command may do. The zero value of a field means, in a command's policy, what the
// executor's says, and there the default; lists and the runner are not added up. Paths are absolute; they are resolved
// once, symbolic links followed.
type SandboxPolicy struct {
	// Mode says how much may be changed. Default: ModeReadOnly.
	Mode SandboxMode
	// Workspace is the directory that ModeWorkspaceWrite lets a command change. Default: the executor's Dir, whatever the
	// command's Dir is.
	Workspace string
	// Writable are further paths that ModeWorkspaceWrite lets a command change. They have to exist.
	Writable []string
	// Hidden are paths whose contents a command does not get to see. Those that do not exist are passed over.
	Hidden []string
	// Network says how much of the network may be used. Default: NetworkFull.
	Network Network
	// Backends are what is tried, in this order; the first that works here is used. Default: the runner if there is one,
	// then all of the system, bubblewrap before Landlock.
	Backends []Backend
	// Runner is the caller's own sandbox.
	Runner *Runner
	// GitWorktree says whether a command may commit in a linked git worktree. Default: GitWorktreeOff.
	GitWorktree GitWorktree
}

// named sets a constant by its name, which stands at its number.
func named[T ~uint32](constant *T, field string, text []byte, names []string) error {
	number := 0
	if len(text) > 0 {
		number = slices.Index(names, string(text))
	}
	if number < 0 {
		return invalid("%s %q: is none of %s", field, text, strings.Join(names, ", "))
	}
	*constant = T(number)
	return nil
}

// sandbox adds the texts of a policy, and gives its numbers as the shim takes them: nil for none.
func (p *packer) sandbox(s *SandboxPolicy) *C.dshgo_policy_t {
	if s == nil {
		return nil
	}
	policy := &C.dshgo_policy_t{terms: C.dsh_sandbox_t{
		size:         C.sizeof_dsh_sandbox_t,
		writable_len: C.size_t(len(s.Writable)),
		hidden_len:   C.size_t(len(s.Hidden)),
		backends_len: C.size_t(len(s.Backends)),
		flags:        C.uint64_t(s.GitWorktree),
		mode:         C.dsh_sandbox_mode_t(s.Mode),
		network:      C.dsh_network_t(s.Network),
	}}
	if s.GitWorktree > GitWorktreeOff {
		p.note(invalid("sandbox.git_worktree %d: is neither on nor off", s.GitWorktree))
	}
	if len(s.Backends) > len(policy.backends) {
		p.note(invalid("sandbox.backends: names %d, of %d at most", len(s.Backends), len(policy.backends)))
	}
	for i, backend := range s.Backends[:min(len(s.Backends), len(policy.backends))] {
		policy.backends[i] = C.dsh_backend_t(backend)
	}
	p.text("sandbox.workspace", s.Workspace)
	p.list("sandbox.writable", s.Writable)
	p.list("sandbox.hidden", s.Hidden)
	if r := s.Runner; r != nil {
		if len(r.Command) == 0 {
			p.note(invalid("sandbox.runner: names no program"))
		}
		policy.terms.runner_len = C.size_t(len(r.Command))
		policy.terms.runner_failures_len = C.size_t(len(r.Failures))
		p.list("sandbox.runner", r.Command)
		p.list("sandbox.runner_failures", r.Failures)
	}
	return policy
}

// sandboxPolicy is the way back from C.
func sandboxPolicy(c *C.dsh_sandbox_t) *SandboxPolicy {
	if c == nil {
		return nil
	}
	policy := &SandboxPolicy{
		Mode:        SandboxMode(c.mode),
		Workspace:   C.GoString(c.workspace),
		Writable:    goStrings(c.writable, c.writable_len),
		Hidden:      goStrings(c.hidden, c.hidden_len),
		Network:     Network(c.network),
		GitWorktree: GitWorktree(c.flags),
	}
	for _, backend := range unsafe.Slice(c.backends, c.backends_len) {
		policy.Backends = append(policy.Backends, Backend(backend))
	}
	if c.runner_len > 0 {
		policy.Runner = &Runner{
			Command:  goStrings(c.runner, c.runner_len),
			Failures: goStrings(c.runner_failures, c.runner_failures_len),
		}
	}
	return policy
}
