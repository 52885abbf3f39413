//! What has to be attended to while a confined command lives: the warden's words, and the calls that wait for the witness
//! to answer.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::bubblewrap;
use super::verdict::Attempt;
use super::warden::Status;
use super::witness::{State, Witness};
use super::Terms;

/// Shared by whoever attends to it and whoever draws the conclusions.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Mutex<Watched>>);

struct Watched {
    terms: Arc<Terms>,
    /// Whose witness is still to come out of it.
    warden: Option<Status>,
    witness: Option<Witness>,
}

impl Watch {
    pub(super) fn of_warden(warden: Status, terms: Arc<Terms>) -> Watch {
        Watch(Arc::new(Mutex::new(Watched { terms, warden: Some(warden), witness: None })))
    }

    pub(super) fn of_witness(witness: Witness, terms: Arc<Terms>) -> Watch {
        Watch(Arc::new(Mutex::new(Watched { terms, warden: None, witness: Some(witness) })))
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock()
    }

    /// What to wait for now: it is readable when there is something to attend to.
    pub(crate) fn fd(&self) -> RawFd {
        let watched = self.lock();
        let warden = watched.warden.as_ref().map_or(-1, |warden| warden.as_fd().as_raw_fd());
        watched.witness.as_ref().map_or(warden, Witness::fd)
    }

    /// Attends to what there is, without waiting; answers up to `limit` calls. [`State::Over`] when there is nothing to be
    /// waited for any more. What to wait for may be another descriptor afterwards.
    pub(crate) fn attend(&self, limit: usize) -> State {
        let mut watched = self.lock();
        if watched.witness.is_none() {
            watched.hear();
        }
        let Watched { warden, witness, .. } = &mut *watched;
        match witness {
            Some(witness) => witness.answer(limit),
            None if warden.as_ref().is_some_and(|warden| !warden.over) => State::Waiting,
            None => State::Over,
        }
    }

    /// What the warden has said so far.
    pub(super) fn ask_warden<T>(&self, question: impl FnOnce(&Status) -> T) -> Option<T> {
        let mut watched = self.lock();
        watched.hear();
        watched.warden.as_ref().map(question)
    }

    /// What the witness has seen; `None` when there is none, or it could not see everything.
    pub(super) fn testimony(&self) -> Option<Vec<Attempt>> {
        self.lock().witness.as_ref().and_then(|witness| witness.testimony().map(<[_]>::to_vec))
    }
}

impl Watched {
    fn hear(&mut self) {
        let Some(warden) = &mut self.warden else { return };
        warden.read();
        if let Some(listener) = warden.witness.take() {
            let own = bubblewrap::temp(&self.terms).to_owned();
            self.witness = Some(Witness::new(listener, self.terms.clone(), Some(own)));
        }
    }
}
