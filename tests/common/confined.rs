//! A place to confine commands in: a workspace, a folder outside it, and an executor.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dsh::{Backend, Config, Executor, Mode, Network, Request, RunResult, SandboxPolicy};

use super::{executor_with, quick};

pub const BACKENDS: [Backend; 2] = [Backend::Bubblewrap, Backend::Landlock];

pub struct Place {
    _folder: tempfile::TempDir,
    pub workspace: PathBuf,
    pub outside: PathBuf,
    pub backend: Backend,
    pub executor: Executor,
}

impl Place {
    pub fn new(backend: Backend) -> Place {
        Place::with(backend, |_| {})
    }

    pub fn with(backend: Backend, change: impl FnOnce(&mut SandboxPolicy)) -> Place {
        // Not in /tmp alone: bubblewrap has one of its own there, and what is outside must be seen to be outside.
        let folder = tempfile::Builder::new().prefix("dsh-confined-").tempdir_in(base()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [workspace, outside] = ["workspace", "outside"].map(|name| folder.path().join(name));
        for path in [&workspace, &outside, &outside.join("dir")] {
            fs::create_dir(path).unwrap();
        }
        fs::write(outside.join("file"), "precious\n").unwrap();
        let mut policy = SandboxPolicy {
            workspace: Some(workspace.clone()),
            backends: vec![backend],
            ..SandboxPolicy::new(Mode::WorkspaceWrite)
        };
        change(&mut policy);
        let cwd = workspace.clone();
        let executor = executor_with(|config| (config.sandbox, config.cwd) = (Some(policy), Some(cwd)));
        Place { _folder: folder, workspace, outside, backend, executor }
    }

    pub fn config(&self) -> Config {
        Config { sandbox: self.executor.config().unwrap().sandbox, cwd: Some(self.workspace.clone()), ..quick() }
    }

    /// A command that finds its way by `$WS` and `$OUT`.
    pub fn request(&self, command: impl AsRef<str>) -> Request {
        let path = |path: &Path| Some(path.as_os_str().to_owned());
        Request {
            env: vec![("WS".into(), path(&self.workspace)), ("OUT".into(), path(&self.outside))],
            ..Request::new(command.as_ref())
        }
    }

    pub fn run(&self, command: impl AsRef<str>) -> RunResult {
        self.executor.run(self.request(command)).unwrap()
    }

    pub fn run_with(&self, command: impl AsRef<str>, change: impl FnOnce(&mut Request)) -> RunResult {
        let mut request = self.request(command);
        change(&mut request);
        self.executor.run(request).unwrap()
    }

    pub fn run_in_mode(&self, mode: Mode, command: impl AsRef<str>) -> RunResult {
        self.run_with(command, |request| request.sandbox = Some(SandboxPolicy::new(mode)))
    }
}

/// A folder that anybody may make folders in, and that no backend has one of its own of.
fn base() -> &'static Path {
    Path::new("/var/tmp")
}

pub fn network(network: Network) -> Option<SandboxPolicy> {
    Some(SandboxPolicy { network: Some(network), ..SandboxPolicy::default() })
}

/// Everything about a file that a command could change: kind, mode, owner, time, content or target.
type Entry = (u32, u32, i64, i64, Vec<u8>);

/// Everything below a folder, and the folder itself.
pub fn snapshot(folder: &Path) -> BTreeMap<OsString, Entry> {
    let mut found = BTreeMap::new();
    let mut next = vec![folder.to_owned()];
    while let Some(path) = next.pop() {
        let meta = path.symlink_metadata().unwrap();
        let content = match meta.file_type() {
            kind if kind.is_symlink() => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
            kind if kind.is_file() => fs::read(&path).unwrap(),
            kind if kind.is_dir() => {
                next.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            _ => Vec::new(),
        };
        found.insert(path.into_os_string(), (meta.mode(), meta.uid(), meta.mtime(), meta.mtime_nsec(), content));
    }
    found
}
