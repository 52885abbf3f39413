//! Private directories for the temporary files of confined commands.
//!
//! They are in the executor's directory of spill files, so that whoever sweeps that after the host's death takes them
//! along.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::spill::SpillStore;

/// A directory of one command, of mode 0700. Dropped, it is left to [`SpillStore::clean_up`], since removing what a
/// command has left can take long and whoever drops it may not wait.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    store: Arc<SpillStore>,
}

impl Scratch {
    pub(super) fn create(path: PathBuf, store: Arc<SpillStore>) -> io::Result<Scratch> {
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let scratch = Scratch { path, store };
        // The host's umask may have taken even the owner's rights away.
        fs::set_permissions(&scratch.path, fs::Permissions::from_mode(0o700))?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.store.leave(std::mem::take(&mut self.path));
    }
}

/// Removes a directory with all that is in it, also where a command has taken its own rights away. Symbolic links are
/// removed and not followed.
pub(super) fn remove_tree(path: &Path) {
    if fs::remove_dir_all(path).is_err() {
        open_up(path);
        let _ = fs::remove_dir_all(path);
    }
}

/// Gives the owner all rights on a directory and those in it.
fn open_up(path: &Path) {
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
