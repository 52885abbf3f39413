//! What confinement this system has, why not more, and what would mend it.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::select::{try_out, Probe};
use super::Backend;
#[cfg(target_os = "linux")]
use super::{bubblewrap, landlock};
use crate::output::SpillStore;

/// What was found out about one backend by really running something under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendReport {
    /// Which one.
    pub backend: Backend,
    /// Whether it confines commands here.
    pub usable: bool,
    /// Whether it also gives them a network of their own, or none.
    pub network: bool,
    /// The version of its interface; 0 when it has none.
    pub version: u32,
    /// The errno of what failed; 0 when nothing did, or no system call.
    pub errno: i32,
    /// What was tried.
    pub tried: String,
    /// What came back.
    pub message: String,
    /// What would mend it; `None` when it works, or nothing would.
    pub remedy: Option<String>,
}

/// A report on all backends of the system, and the facts of the system that decide about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doctor {
    /// The backends in the order in which they are tried by default.
    pub backends: Vec<BackendReport>,
    /// Facts, each a name and a value.
    pub facts: Vec<(&'static str, String)>,
}

/// Tries every backend of the system with a shell that does nothing, and reports. Takes some milliseconds for each.
pub fn sandbox_doctor() -> Doctor {
    let spills = Arc::new(SpillStore::new(std::env::temp_dir(), 1));
    let facts = facts();
    let backends = Backend::OF_THE_SYSTEM.iter().map(|backend| report(*backend, &spills, &facts)).collect();
    Doctor { backends, facts }
}

fn report(backend: Backend, spills: &Arc<SpillStore>, facts: &[(&'static str, String)]) -> BackendReport {
    let files = try_out(backend, false, spills);
    let network = if files.usable { Some(try_out(backend, true, spills)) } else { None };
    let has_network = network.as_ref().is_some_and(|probe| probe.usable);
    let probe = network.filter(|probe| !probe.usable).unwrap_or_else(|| files.clone());
    BackendReport {
        backend,
        usable: files.usable,
        network: has_network,
        version: version(backend),
        errno: probe.errno,
        tried: probe.tried.into(),
        remedy: if probe.usable { None } else { Some(remedy(&probe, facts)) },
        message: probe.message,
    }
}

fn version(backend: Backend) -> u32 {
    match backend {
        #[cfg(target_os = "linux")]
        Backend::Landlock => landlock::version().unwrap_or(0),
        _ => 0,
    }
}

/// The mending step, by what failed and what the system says of itself.
fn remedy(probe: &Probe, facts: &[(&'static str, String)]) -> String {
    let is = |name: &str, value: &str| facts.iter().any(|(fact, found)| *fact == name && found == value);
    match (probe.backend, probe.errno) {
        (Backend::Bubblewrap, libc::ENOENT) => {
            "install bubblewrap (Debian, Ubuntu, Fedora and Arch have a package of that name) and have bwrap in PATH".into()
        }
        (Backend::Bubblewrap, _) if is("kernel.apparmor_restrict_unprivileged_userns", "1") => {
            "AppArmor keeps unprivileged user namespaces from having rights: give bwrap an AppArmor profile that allows \
             `userns,`, or set the sysctl kernel.apparmor_restrict_unprivileged_userns to 0"
                .into()
        }
        (Backend::Bubblewrap, _) if is("user.max_user_namespaces", "0") => {
            "set the sysctl user.max_user_namespaces to more than 0".into()
        }
        (Backend::Bubblewrap, _) if is("kernel.unprivileged_userns_clone", "0") => {
            "set the sysctl kernel.unprivileged_userns_clone to 1".into()
        }
        (Backend::Bubblewrap, _) if facts.iter().any(|(fact, found)| *fact == "container" && found != "no") => {
            "containers often forbid user namespaces or mounting /proc: allow them for this one (for Docker: a seccomp \
             profile that allows clone with CLONE_NEWUSER, and --security-opt systempaths=unconfined), or rely on Landlock"
                .into()
        }
        (Backend::Bubblewrap, _) => "run `bwrap --ro-bind / / --dev /dev --proc /proc true` and mend what it says".into(),
        (Backend::Landlock, libc::ENOSYS) => {
            "use a kernel of 5.13 or newer that is built with CONFIG_SECURITY_LANDLOCK; in a container, a seccomp profile \
             that allows the landlock_* calls"
                .into()
        }
        (Backend::Landlock, libc::EOPNOTSUPP) => "add `landlock` to the `lsm=` list of the kernel's command line".into(),
        (Backend::Landlock, _) => "see the message; the kernel has Landlock".into(),
        _ => "none".into(),
    }
}

/// What the system says of itself, as far as it says so.
fn facts() -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    #[cfg(target_os = "linux")]
    {
        let file = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let landlock = landlock::version().map_or_else(
            |errno| format!("none ({})", std::io::Error::from_raw_os_error(errno)),
            |version| version.to_string(),
        );
        facts.push(("landlock", landlock));
        let bwrap = bubblewrap::find();
        facts.push(("bwrap", bwrap.map_or("not in PATH".into(), |path| path.display().to_string())));
        for (name, path) in [
            ("kernel", "/proc/sys/kernel/osrelease"),
            ("user.max_user_namespaces", "/proc/sys/user/max_user_namespaces"),
            ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone"),
            ("kernel.apparmor_restrict_unprivileged_userns", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            ("lsm", "/sys/kernel/security/lsm"),
        ] {
            facts.push((name, file(path).unwrap_or_else(|| "not there".into())));
        }
    }
    facts.push(("container", container().into()));
    facts.push(("user", nix::unistd::geteuid().to_string()));
    facts
}

/// What kind of container this looks like.
fn container() -> &'static str {
    if Path::new("/.dockerenv").exists() {
        "docker"
    } else if Path::new("/run/.containerenv").exists() {
        "podman"
    } else if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        "kubernetes"
    } else if fs::read_to_string("/run/systemd/container").is_ok() || std::env::var_os("container").is_some() {
        "some"
    } else {
        "no"
    }
}

impl fmt::Display for Doctor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for report in &self.backends {
            let verdict = match (report.usable, report.network) {
                (true, true) => "works",
                (true, false) => "works, but not with a network of its own",
                (false, _) => "does not work",
            };
            writeln!(f, "{}: {verdict}", report.backend)?;
            if report.version > 0 {
                writeln!(f, "  version: {}", report.version)?;
            }
            writeln!(f, "  tried: {}", report.tried)?;
            writeln!(f, "  came back: {}", report.message)?;
            if report.errno != 0 {
                writeln!(f, "  errno: {}", report.errno)?;
            }
            if let Some(remedy) = &report.remedy {
                writeln!(f, "  to mend it: {remedy}")?;
            }
        }
        for (name, value) in &self.facts {
            writeln!(f, "{name}: {value}")?;
        }
        Ok(())
    }
}
