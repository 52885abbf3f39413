//! What a linked git worktree needs of the repository it belongs to.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The parts of the main repository that a commit in a linked worktree writes to: the worktree's own administration, the
/// objects, the references and their logs. Neither `hooks` nor `config`, through which a command could have others run
/// what it likes. Empty for anything but a linked worktree.
pub(crate) fn writable_parts(workspace: &Path) -> Vec<PathBuf> {
    let Some(own) = link(&workspace.join(".git"), b"gitdir: ", workspace) else { return Vec::new() };
    let Some(common) = link(&own.join("commondir"), b"", &own) else { return Vec::new() };
    // The worktree's folder has to be where git puts it, and to lead back here: a `.git` file is the command's to write,
    // and could otherwise name any folder of the host.
    let is_one_of_its_worktrees = own.parent() == Some(common.join("worktrees").as_path());
    let leads_back = link(&own.join("gitdir"), b"", &own).as_deref() == Some(workspace.join(".git").as_path());
    if !is_one_of_its_worktrees || !leads_back {
        return Vec::new();
    }
    let parts = ["objects", "refs", "logs"].map(|part| common.join(part));
    [own].into_iter().chain(parts).filter_map(|part| part.canonicalize().ok()).filter(|part| part.is_dir()).collect()
}

/// The path that a small file of git's holds, without symbolic links; relative ones count from `base`.
fn link(file: &Path, prefix: &[u8], base: &Path) -> Option<PathBuf> {
    const LONGEST: u64 = 64 << 10;
    let is_small_file = fs::symlink_metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST);
    let text = is_small_file.then(|| fs::read(file).ok())??;
    let path = text.strip_prefix(prefix)?.trim_ascii_end();
    base.join(OsStr::from_bytes(path)).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one linked worktree, as git lays them out.
    fn repository(folder: &Path) -> (PathBuf, PathBuf) {
        let folder = folder.canonicalize().unwrap();
        let (main, linked) = (folder.join("main/.git"), folder.join("linked"));
        let own = main.join("worktrees/linked");
        for made in [&own, &main.join("objects"), &main.join("refs"), &main.join("hooks"), &linked] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(linked.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(own.join("gitdir"), format!("{}\n", linked.join(".git").display())).unwrap();
        (main, linked)
    }

    #[test]
    fn a_linked_worktree_needs_its_own_folder_the_objects_and_the_references() {
        let folder = tempfile::tempdir().unwrap();
        let (main, linked) = repository(folder.path());
        let expected = ["worktrees/linked", "objects", "refs"].map(|part| main.join(part));
        assert_eq!(writable_parts(&linked), expected);
    }

    #[test]
    fn a_git_file_that_names_a_folder_of_somebody_else_opens_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (main, linked) = repository(folder.path());
        let stranger = folder.path().join("stranger");
        fs::create_dir_all(&stranger).unwrap();
        let own = main.join("worktrees/linked");
        fs::write(stranger.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        assert!(writable_parts(&stranger).is_empty());
        fs::write(linked.join(".git"), format!("gitdir: {}\n", folder.path().display())).unwrap();
        assert!(writable_parts(&linked).is_empty());
    }

    #[test]
    fn an_ordinary_repository_needs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        assert!(writable_parts(folder.path()).is_empty());
    }
}
