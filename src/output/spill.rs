//! Spill files: whole streams on disk, in a private directory per executor.
//!
//! The directory, `libdsh-…`, holds a file `lock` with an exclusive `flock` for as long as its owner lives. The kernel
//! drops the lock with the process, however that ends, and so a later [`SpillStore::sweep`] knows what nobody owns.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use nix::fcntl::{self, OFlag, AT_FDCWD};
use nix::sys::stat::{fchmodat, FchmodatFlags, Mode};
use nix::unistd::{self, UnlinkatFlags};
use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result, Stage};
use crate::fd::above_stdio;

use super::scratch::{remove_tree, Scratch};

const PREFIX: &str = "libdsh-";
const LOCK: &str = "lock";
/// The lock file's name until it is locked, so that no `lock` without a lock ever belongs to a living owner.
const UNLOCKED: &str = "lock.new";

/// The spill files of one executor and their budget. Any thread may use it.
#[derive(Debug)]
pub(crate) struct SpillStore {
    parent: PathBuf,
    max_total: AtomicU64,
    used: Arc<AtomicU64>,
    state: Mutex<State>,
    /// The process that made it. A forked child has a copy of the store and must not remove what is its parent's.
    owner: u32,
}

#[derive(Debug, Default)]
struct State {
    dir: Option<PrivateDir>,
    files: Vec<Arc<Record>>,
    /// Where directories for temporary files are made when there can be none beside the spill files.
    elsewhere: Option<PrivateDir>,
    /// Directories for temporary files whose commands are over.
    left: Vec<PathBuf>,
    finished: bool,
}

/// A spill file as it was made, and the bytes it is charged with.
#[derive(Debug)]
struct Record {
    path: PathBuf,
    id: FileId,
    bytes: AtomicU64,
}

/// Tells a file from another one that has taken its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    dev: u64,
    ino: u64,
}

impl SpillStore {
    /// A store that will keep its directory in `parent`, and starts no file once `max_total` bytes are used. Makes
    /// nothing on disk.
    pub fn new(parent: PathBuf, max_total: u64) -> SpillStore {
        // Paths are given out, and must still mean the same after the host has changed its directory.
        let parent = std::path::absolute(&parent).unwrap_or(parent);
        let used = Arc::new(AtomicU64::new(0));
        let (max_total, owner) = (AtomicU64::new(max_total), std::process::id());
        SpillStore { parent, max_total, used, state: Mutex::default(), owner }
    }

    /// Changes the budget, in bytes; it holds for files that are not yet started.
    pub fn set_max_total(&self, max_total: u64) {
        self.max_total.store(max_total, Relaxed);
    }

    /// Bytes in spill files that exist, as far as their removal by others has been noticed.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Makes an empty spill file, `<label>-<random>.log`, and before the first one the directory for it.
    ///
    /// Fails when the budget is used up, the store is finished, or the system refuses.
    pub fn open(&self, label: &str) -> Result<SpillFile> {
        let mut state = self.state.lock();
        if state.finished {
            return Err(Error::new(
                ErrorKind::Shutdown,
                Stage::Spill,
                "no spill file: the executor has been shut down",
            ));
        }
        self.check_budget(&mut state)?;
        let dir = self.private_dir(&mut state)?;
        let name = format!("{label}-{}.log", random_name());
        let path = dir.path.join(&name);
        let refused = |error: io::Error| system_error(&error, format!("can't make the spill file {}", path.display()));
        let file = create_at(&dir.handle, &name, OFlag::O_WRONLY).map_err(refused)?;
        let id = file.metadata().map(|metadata| FileId::of(&metadata)).map_err(|error| {
            let _ = unistd::unlinkat(&dir.handle, name.as_str(), UnlinkatFlags::NoRemoveDir);
            refused(error)
        })?;
        let record = Arc::new(Record { path, id, bytes: AtomicU64::new(0) });
        state.files.push(Arc::clone(&record));
        Ok(SpillFile { record, file: Some(file), used: Arc::clone(&self.used) })
    }

    /// Makes a directory for the temporary files of one command.
    pub fn scratch(self: &Arc<Self>) -> io::Result<Scratch> {
        self.clean_up();
        let path = {
            let mut state = self.state.lock();
            if state.finished {
                return Err(io::Error::other("the executor has been shut down"));
            }
            let dir = match self.private_dir(&mut state) {
                Ok(dir) => dir,
                // Spill files may be done without; a command without a place for temporary files may not.
                Err(error) => elsewhere(&mut state.elsewhere).ok_or_else(|| io::Error::other(error))?,
            };
            dir.path.join(format!("tmp-{:08x}", RandomState::new().hash_one(0u8) as u32))
        };
        Scratch::create(path, Arc::clone(self))
    }

    /// The directory of the spill files, once there is one.
    #[cfg(target_os = "linux")]
    pub fn directory(&self) -> Option<PathBuf> {
        self.state.lock().dir.as_ref().map(|dir| dir.path.clone())
    }

    /// A directory for temporary files whose command is over.
    pub(super) fn leave(&self, scratch: PathBuf) {
        if self.owner == std::process::id() {
            self.state.lock().left.push(scratch);
        }
    }

    /// Removes what commands that are over have left in their directories. For threads that may wait.
    pub fn clean_up(&self) {
        let left = std::mem::take(&mut self.state.lock().left);
        left.iter().for_each(|path| remove_tree(path));
    }

    fn private_dir<'a>(&self, state: &'a mut State) -> Result<&'a mut PrivateDir> {
        if !state.dir.as_ref().is_some_and(PrivateDir::is_in_place) {
            state.dir = None;
        }
        match &mut state.dir {
            Some(dir) => Ok(dir),
            none => Ok(none.insert(PrivateDir::create(&self.parent)?)),
        }
    }

    /// Ends the store: removes the directory with all files or, with `keep`, leaves them behind for good. Later calls
    /// do nothing, and [`open`](Self::open) fails. Does nothing in a forked child, whose parent owns the files.
    pub fn finish(&self, keep: bool) {
        // Before the lock, which a thread that the child doesn't have may hold for ever.
        if self.owner != std::process::id() {
            return;
        }
        let (dir, files, elsewhere) = {
            let mut state = self.state.lock();
            state.finished = true;
            (state.dir.take(), std::mem::take(&mut state.files), state.elsewhere.take())
        };
        self.clean_up();
        if let Some(elsewhere) = elsewhere.filter(PrivateDir::is_in_place) {
            remove(&elsewhere.path, &elsewhere.handle);
        }
        let Some(dir) = dir else { return };
        if keep {
            // Without a lock file it is no sweep's business.
            let _ = unistd::unlinkat(&dir.handle, LOCK, UnlinkatFlags::NoRemoveDir);
            // Only goes if there is nothing to be left behind.
            let _ = std::fs::remove_dir(&dir.path);
            return;
        }
        if dir.is_in_place() {
            remove(&dir.path, &dir.handle);
        }
        for file in files {
            file.release(&self.used);
        }
    }

    /// Removes the directories of stores in `parent` whose owners are dead, and leaves all others alone. Errors are
    /// ignored. Safe beside other sweeps and beside stores that are being made.
    pub fn sweep(parent: &Path) {
        let Ok(entries) = std::fs::read_dir(parent) else { return };
        for entry in entries.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                let _ = sweep_one(&entry.path());
            }
        }
    }

    /// Refuses when the budget is used up, after a look whether others have removed files to make room.
    fn check_budget(&self, state: &mut State) -> Result<()> {
        let max = self.max_total.load(Relaxed);
        // Forget what was discarded: nothing is charged to it, and nobody writes to it.
        state.files.retain(|file| file.bytes.load(Relaxed) > 0 || Arc::strong_count(file) > 1);
        if self.used() < max {
            return Ok(());
        }
        state.files.retain(|file| {
            let there = file.is_in_place();
            if !there {
                file.release(&self.used);
            }
            there
        });
        if self.used() < max {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::System,
            Stage::Spill,
            format!("no spill file: max_total_spill_bytes {max} is used up"),
        ))
    }
}

impl Drop for SpillStore {
    fn drop(&mut self) {
        self.finish(false);
    }
}

/// A spill file. Dropping it closes it; it stays on disk until it is discarded or its store is finished.
#[derive(Debug)]
pub(crate) struct SpillFile {
    record: Arc<Record>,
    file: Option<File>,
    used: Arc<AtomicU64>,
}

impl SpillFile {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.record.path
    }

    /// Writes all of `bytes` at the end, at once and without a buffer. After an error the file is of no use.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let n = bytes.len() as u64;
        // Charged before they are written, so that at no time more is on disk than is accounted for; and the total
        // first, so that what another thread gives back meanwhile has been added to it.
        self.used.fetch_add(n, Relaxed);
        self.record.bytes.fetch_add(n, Relaxed);
        match &mut self.file {
            Some(file) => file.write_all(bytes).map_err(|error| self.failed(&error)),
            None => Err(self.failed(&io::Error::from_raw_os_error(libc::EBADF))),
        }
    }

    /// Closes the descriptor. Some file systems tell only now that bytes could not be written.
    pub fn close(&mut self) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let closed = unistd::close(OwnedFd::from(file));
        if !self.record.is_in_place() {
            self.record.release(&self.used);
        }
        match closed {
            // The descriptor is closed all the same.
            Ok(()) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(errno) => Err(self.failed(&errno.into())),
        }
    }

    /// Whether the file is where it was made, still the same, and as long as what was written to it.
    pub fn is_intact(&self) -> bool {
        self.record.find().is_some_and(|metadata| metadata.len() == self.record.bytes.load(Relaxed))
    }

    /// Removes the file and gives its bytes back.
    pub fn discard(mut self) {
        let removed = self.record.is_in_place() && std::fs::remove_file(self.path()).is_ok();
        if let (false, Some(file)) = (removed, &mut self.file) {
            // It has been moved, or can't be unlinked: its blocks at least can be freed.
            let _ = file.set_len(0);
        }
        self.record.release(&self.used);
    }

    fn failed(&self, error: &io::Error) -> Error {
        system_error(error, format!("can't write the spill file {}", self.path().display()))
    }
}

impl Record {
    fn find(&self) -> Option<Metadata> {
        let metadata = self.path.symlink_metadata().ok()?;
        (metadata.is_file() && FileId::of(&metadata) == self.id).then_some(metadata)
    }

    fn is_in_place(&self) -> bool {
        self.find().is_some()
    }

    /// Gives back what the file is charged with; at most once, whoever comes first.
    fn release(&self, used: &AtomicU64) {
        used.fetch_sub(self.bytes.swap(0, Relaxed), Relaxed);
    }
}

impl FileId {
    fn of(metadata: &Metadata) -> FileId {
        FileId { dev: metadata.dev(), ino: metadata.ino() }
    }
}

/// The directory of a living store.
#[derive(Debug)]
struct PrivateDir {
    path: PathBuf,
    handle: File,
    /// Holds the lock as long as it is open. It must never be unlocked by hand: a forked child shares the lock.
    _lock: File,
}

impl PrivateDir {
    fn create(parent: &Path) -> Result<PrivateDir> {
        let path = parent.join(format!("{PREFIX}{}", random_name()));
        let refused =
            |error: io::Error| system_error(&error, format!("can't make the spill directory {}", path.display()));
        DirBuilder::new().mode(0o700).create(&path).map_err(refused)?;
        match PrivateDir::furnish(&path) {
            Ok((handle, lock)) => Ok(PrivateDir { handle, _lock: lock, path }),
            Err(error) => {
                let _ = std::fs::remove_dir(&path);
                Err(refused(error))
            }
        }
    }

    /// Opens a new directory, gives it its mode, and puts a locked lock file into it.
    fn furnish(path: &Path) -> io::Result<(File, File)> {
        let handle = match open_dir(path) {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                // The host's umask takes even the owner's rights away, and is not ours to change.
                fchmodat(AT_FDCWD, path, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)?;
                open_dir(path)?
            }
            handle => handle?,
        };
        if handle.metadata()?.uid() != unistd::geteuid().as_raw() {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        handle.set_permissions(Permissions::from_mode(0o700))?;
        let lock = create_at(&handle, UNLOCKED, OFlag::O_RDWR)?;
        let locked = try_lock(&lock).and_then(|()| Ok(fcntl::renameat(&handle, UNLOCKED, &handle, LOCK)?));
        if locked.is_err() {
            let _ = unistd::unlinkat(&handle, UNLOCKED, UnlinkatFlags::NoRemoveDir);
        }
        locked.map(|()| (handle, lock))
    }

    fn is_in_place(&self) -> bool {
        match (self.path.symlink_metadata(), self.handle.metadata()) {
            (Ok(there), Ok(ours)) => there.is_dir() && FileId::of(&there) == FileId::of(&ours),
            _ => false,
        }
    }
}

/// A private directory where directories for temporary files usually are. What dead hosts have left there is removed.
fn elsewhere(dir: &mut Option<PrivateDir>) -> Option<&mut PrivateDir> {
    if !dir.as_ref().is_some_and(PrivateDir::is_in_place) {
        *dir = ["/tmp", "/var/tmp"].iter().map(Path::new).find_map(|parent| {
            SpillStore::sweep(parent);
            PrivateDir::create(parent).ok()
        });
    }
    dir.as_mut()
}

/// Removes a spill directory if its owner is dead.
fn sweep_one(path: &Path) -> io::Result<()> {
    let handle = open_dir(path)?;
    if handle.metadata()?.uid() != unistd::geteuid().as_raw() {
        return Ok(());
    }
    // Not blocking: a FIFO of that name would wait for its other end.
    let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let lock = File::from(above_stdio(fcntl::openat(&handle, LOCK, flags, Mode::empty())?)?);
    if !lock.metadata()?.is_file() {
        return Ok(());
    }
    try_lock(&lock)?;
    // Another sweep may have removed it before it could be locked here: then the directory is that one's.
    let named = File::from(above_stdio(fcntl::openat(&handle, LOCK, flags, Mode::empty())?)?);
    if FileId::of(&named.metadata()?) == FileId::of(&lock.metadata()?) {
        remove(path, &handle);
    }
    Ok(())
}

/// Removes a spill directory. The caller holds its lock, which goes last: what can't be removed now is left to a sweep.
///
/// Names are listed by path and removed relative to the directory's handle, so that a path which leads elsewhere by now
/// does no harm. Directories in it are those of commands, for temporary files.
fn remove(path: &Path, handle: &File) {
    let Ok(entries) = std::fs::read_dir(path) else { return };
    let names = entries.flatten().map(|entry| entry.file_name()).filter(|name| name != LOCK);
    let failed = names.filter(|name| {
        let file = unistd::unlinkat(handle, name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        if file.is_err() {
            remove_tree(&path.join(name));
        }
        file.is_err() && path.join(name).symlink_metadata().is_ok()
    });
    if failed.count() == 0 {
        let _ = unistd::unlinkat(handle, LOCK, UnlinkatFlags::NoRemoveDir);
        let _ = std::fs::remove_dir(path);
    }
}

fn open_dir(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Ok(File::from(above_stdio(fcntl::open(path, flags, Mode::empty())?)?))
}

/// Makes a file that was not there, of mode 0600 whatever the umask.
fn create_at(dir: &File, name: &str, access: OFlag) -> io::Result<File> {
    let flags = access | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    let fd = fcntl::openat(dir, name, flags, mode)?;
    let prepared = above_stdio(fd).map(File::from).and_then(|file| {
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(file)
    });
    if prepared.is_err() {
        let _ = unistd::unlinkat(dir, name, UnlinkatFlags::NoRemoveDir);
    }
    prepared
}

/// Takes the exclusive lock of a file, without waiting.
fn try_lock(file: &File) -> io::Result<()> {
    // SAFETY: flock takes two integers; the descriptor is open for the length of the call.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A name that can't be guessed: the standard library's hash keys come from the system's random numbers, and the hash
/// (SipHash) shows nothing of them.
fn random_name() -> String {
    let word = |salt: u8| RandomState::new().hash_one(salt);
    format!("{:016x}{:016x}", word(0), word(1))
}

fn system_error(error: &io::Error, message: String) -> Error {
    match error.raw_os_error() {
        Some(errno) => Error::system(Stage::Spill, errno, message),
        None => Error::new(ErrorKind::System, Stage::Spill, format!("{message}: {error}")),
    }
}
