package dsh

// #include "shim.h"
import "C"

// Enforcement says how much of a policy the backend enforces.
type Enforcement uint32

const (
	// EnforcementNone: nothing, under full access.
	EnforcementNone Enforcement = C.DSH_ENFORCEMENT_NONE
	// EnforcementFull: all of it.
	EnforcementFull Enforcement = C.DSH_ENFORCEMENT_FULL
	// EnforcementPartial: not what [SandboxFacts.Missing] names.
	EnforcementPartial Enforcement = C.DSH_ENFORCEMENT_PARTIAL
)

// String gives "none", "full" or "partial".
func (e Enforcement) String() string {
	return nameOf(e, "none", "full", "partial")
}

// Denied says whether the confinement has kept a command from something. It is no guess from the command's words.
type Denied uint32

const (
	// DeniedUnknown: there is no telling (yet), or it did not matter to the command.
	DeniedUnknown Denied = C.DSH_DENIED_UNKNOWN
	// DeniedNo: nothing shows that it has.
	DeniedNo Denied = C.DSH_DENIED_NO
	// DeniedYes: it has.
	DeniedYes Denied = C.DSH_DENIED_YES
)

// String gives "unknown", "no" or "yes".
func (d Denied) String() string {
	return nameOf(d, "unknown", "no", "yes")
}

// SandboxFacts is what is known of the confinement of a command.
type SandboxFacts struct {
	// Mode is the one that it ran under.
	Mode SandboxMode
	// Backend is what confined it.
	Backend Backend
	// Enforcement says how much of the policy is enforced.
	Enforcement Enforcement
	// Missing is what the policy says and the backend can't enforce here, a name each: "metadata" (modes, owners, times
	// and attributes of files), "hidden-names", "truncate", "ioctl-dev", "signal", "abstract-unix-socket",
	// "private-loopback".
	Missing []string
	// Network is what it could use.
	Network Network
	// Workspace is the policy's, without symbolic links; empty under full access.
	Workspace string
	// Denied says whether it was kept from something; known once the process has settled.
	Denied Denied
	// DeniedPath is the path that it was kept from, absolute, with DeniedYes.
	DeniedPath string
	// DeniedRule is the rule that forbids that, in a few words, with DeniedYes.
	DeniedRule string
	// RunnerFailed is why the backend failed to set itself up, in which case the command did not run; empty when it did
	// not fail. Of processes in the background only: [Executor.Run] gives [ErrSandboxUnavailable].
	RunnerFailed string
}

// sandboxFacts is nil when nobody has asked for confinement.
func sandboxFacts(f *C.dsh_sandbox_facts_t) *SandboxFacts {
	if f.mode == C.DSH_SANDBOX_DEFAULT {
		return nil
	}
	return &SandboxFacts{
		Mode:         SandboxMode(f.mode),
		Backend:      Backend(f.backend),
		Enforcement:  Enforcement(f.enforcement),
		Missing:      goStrings(f.missing, f.missing_len),
		Network:      Network(f.network),
		Workspace:    C.GoString(f.workspace),
		Denied:       Denied(f.denied),
		DeniedPath:   C.GoString(f.denied_path),
		DeniedRule:   C.GoString(f.denied_rule),
		RunnerFailed: C.GoString(f.runner_failed),
	}
}
