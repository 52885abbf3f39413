//! How the driver of a process is woken, whichever thread that is at the moment.

use std::sync::Arc;

use super::reader::ReaderPost;
use super::reaper::ReaperPost;
use crate::fd::Waker;

/// Rings for the driver of one process.
#[derive(Clone)]
pub(crate) enum Alarm {
    /// The thread that called `run` waits for this.
    Caller(Arc<Waker>),
    /// The reader thread.
    Reader(ReaderPost),
    /// The reaper thread.
    Reaper(ReaperPost),
}

impl Alarm {
    pub(crate) fn ring(&self, process: u64) {
        match self {
            Alarm::Caller(waker) => waker.wake(),
            Alarm::Reader(post) => post.look(process),
            Alarm::Reaper(post) => post.look(process),
        }
    }
}
