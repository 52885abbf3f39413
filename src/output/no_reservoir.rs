//! Elsewhere nothing moves bytes between descriptors inside the kernel, so every stream is read.

use std::fs::File;
use std::io;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) enum Reservoir {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skimmed {
    pub(crate) arrived: usize,
    pub(crate) skipped: usize,
}

impl Reservoir {
    pub(crate) fn new(_: &Arc<File>, _: usize) -> io::Result<Reservoir> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn skim(&mut self) -> io::Result<Skimmed> {
        match *self {}
    }

    pub(crate) fn empty(&mut self, _: impl FnMut(&[u8])) {
        match *self {}
    }
}
