//! What is known of the confinement of a command.

use std::ffi::{c_char, CString};

use super::error::dsh_error_t;
use super::process::dsh_process_t;
use super::result::dsh_result_t;
use super::sandbox::{backend_to_c, dsh_backend_t, dsh_network_t, dsh_sandbox_mode_t, mode_to_c, network_to_c};
use super::status::dsh_status_t;
use super::text::{c_path, c_string, pointer, Texts};
use crate::{Denied, Enforcement, SandboxFacts};

/// How much of the policy the backend enforces.
pub type dsh_enforcement_t = u32;
/// Nothing: full access, or no confinement.
pub const DSH_ENFORCEMENT_NONE: dsh_enforcement_t = 0u32;
/// All of it.
pub const DSH_ENFORCEMENT_FULL: dsh_enforcement_t = 1u32;
/// Not what `missing` names.
pub const DSH_ENFORCEMENT_PARTIAL: dsh_enforcement_t = 2u32;

/// Whether the confinement has kept a command from something.
pub type dsh_denied_t = u32;
/// There is no telling (yet), or it did not matter to the command.
pub const DSH_DENIED_UNKNOWN: dsh_denied_t = 0u32;
/// Nothing shows that it has.
pub const DSH_DENIED_NO: dsh_denied_t = 1u32;
/// It has.
pub const DSH_DENIED_YES: dsh_denied_t = 2u32;

/// What is known of the confinement of a command. What it points to lives as long as the handle that it was read out of.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_sandbox_facts_t {
    /// `sizeof(dsh_sandbox_facts_t)`, set by the caller.
    pub size: usize,
    /// The workspace without symbolic links. NULL under full access.
    pub workspace: *const c_char,
    /// What the policy says and the backend can't enforce here, a name each: "metadata" (modes, owners, times and
    /// attributes of files), "hidden-names", "truncate", "ioctl-dev", "signal", "abstract-unix-socket",
    /// "private-loopback". NULL when nothing.
    pub missing: *const *const c_char,
    /// How many there are.
    pub missing_len: usize,
    /// The path that the command was kept from, absolute; with `DSH_DENIED_UNKNOWN` one that it tried and may have done
    /// without. NULL when there is none.
    pub denied_path: *const c_char,
    /// The rule that forbids it, in a few words. NULL when there is no such path.
    pub denied_rule: *const c_char,
    /// Why the backend failed to set itself up, in which case the command did not run. NULL when it did not fail. Of
    /// processes only: dsh_run() and dsh_process_result() give `DSH_E_SANDBOX_UNAVAILABLE`.
    pub runner_failed: *const c_char,
    /// The mode that it ran under; `DSH_SANDBOX_DEFAULT` when nobody has asked for confinement, and then everything else
    /// here is 0.
    pub mode: dsh_sandbox_mode_t,
    /// What confined it.
    pub backend: dsh_backend_t,
    /// How much is enforced.
    pub enforcement: dsh_enforcement_t,
    /// Whether it was kept from something; known once the process has settled.
    pub denied: dsh_denied_t,
    /// The network that it could use.
    pub network: dsh_network_t,
    /// 0.
    pub reserved: u32,
}

extensible!(dsh_sandbox_facts_t);

/// The facts as C sees them.
pub(super) struct Facts {
    facts: Option<Box<SandboxFacts>>,
    workspace: Option<CString>,
    missing: Texts,
    path: Option<CString>,
    rule: Option<CString>,
    runner_failed: Option<CString>,
}

impl From<Option<Box<SandboxFacts>>> for Facts {
    fn from(facts: Option<Box<SandboxFacts>>) -> Facts {
        let known = facts.as_ref();
        let evidence = known.and_then(|facts| facts.evidence.as_ref());
        Facts {
            workspace: c_path(known.and_then(|facts| facts.workspace.as_deref())),
            missing: Texts::new(known.map_or(&[][..], |facts| &facts.missing)),
            path: evidence.map(|evidence| c_string(&evidence.path)),
            rule: evidence.map(|evidence| c_string(&evidence.rule)),
            runner_failed: known.and_then(|facts| facts.runner_failed.as_ref()).map(c_string),
            facts,
        }
    }
}

impl Facts {
    pub(super) fn to_c(&self) -> dsh_sandbox_facts_t {
        let known = self.facts.as_ref();
        dsh_sandbox_facts_t {
            size: size_of::<dsh_sandbox_facts_t>(),
            workspace: pointer(self.workspace.as_ref()),
            missing: self.missing.pointer(),
            missing_len: self.missing.len(),
            denied_path: pointer(self.path.as_ref()),
            denied_rule: pointer(self.rule.as_ref()),
            runner_failed: pointer(self.runner_failed.as_ref()),
            mode: mode_to_c(known.map(|facts| facts.mode)),
            backend: backend_to_c(known.and_then(|facts| facts.backend)),
            enforcement: match known.and_then(|facts| facts.enforcement) {
                None => DSH_ENFORCEMENT_NONE,
                Some(Enforcement::Full) => DSH_ENFORCEMENT_FULL,
                Some(Enforcement::Partial) => DSH_ENFORCEMENT_PARTIAL,
            },
            denied: match known.map(|facts| facts.denied) {
                None | Some(Denied::Unknown) => DSH_DENIED_UNKNOWN,
                Some(Denied::No) => DSH_DENIED_NO,
                Some(Denied::Yes) => DSH_DENIED_YES,
            },
            network: network_to_c(known.map(|facts| facts.network)),
            reserved: 0,
        }
    }
}

/// Fills in what is known of the confinement of a run. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_result_sandbox(
    result: Option<&dsh_result_t>,
    facts: *mut dsh_sandbox_facts_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on result, out facts, { result.sandbox().to_c() })
}

/// Fills in what is known of the confinement of a process; final once it has settled. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_process_sandbox(
    process: Option<&dsh_process_t>,
    facts: *mut dsh_sandbox_facts_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on process, out facts, { process.sandbox()?.to_c() })
}
