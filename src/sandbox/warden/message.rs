//! What the library and the warden know of each other: the numbers of the descriptors, and the messages. Compiled into
//! both.

/// The text of a long command.
pub(crate) const SCRIPT: i32 = 3;
/// The warden's end of the socket.
pub(crate) const STATUS: i32 = 4;
/// The command's own stdin; stdout and stderr follow.
pub(crate) const STDIO: i32 = 7;
/// The command's environment: each entry ended by NUL.
pub(crate) const ENVIRONMENT: i32 = 11;
/// The witness's filter, an array of `struct sock_filter`.
pub(crate) const WITNESS: i32 = 12;

/// One message; the socket keeps them apart. Without padding, so that it can be sent as its bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Message {
    /// One of [`kind`].
    pub(crate) kind: u32,
    /// Of [`kind::FAILED`]: one of [`step`].
    pub(crate) step: u32,
    /// An errno, or of [`kind::ENDED`] the status as `wait4` tells it.
    pub(crate) value: i32,
    pub(crate) reserved: u32,
    /// CPU time in microseconds, and the peak of resident memory in KiB: of [`kind::ENDED`].
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    pub(crate) max_rss_kib: u64,
}

/// What a message says.
pub(crate) mod kind {
    /// The sandbox stands: whatever happens from here on is not bubblewrap's doing.
    pub(crate) const STARTED: u32 = 1;
    /// The shell is about to be executed under the witness's filter, whose listener comes with this message as a
    /// descriptor. Without one it could not be installed, and `value` says why.
    pub(crate) const WITNESS: u32 = 2;
    /// The shell could not be executed.
    pub(crate) const FAILED: u32 = 3;
    /// The shell has ended.
    pub(crate) const ENDED: u32 = 4;
}

/// The steps that can fail.
pub(crate) mod step {
    pub(crate) const ENVIRONMENT: u32 = 1;
    pub(crate) const CLONE: u32 = 2;
    pub(crate) const SESSION: u32 = 3;
    pub(crate) const SIGNALS: u32 = 4;
    pub(crate) const DESCRIPTORS: u32 = 5;
    pub(crate) const EXEC: u32 = 6;
}
