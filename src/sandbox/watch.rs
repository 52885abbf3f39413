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

/// What there is to do after attending to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attended {
    /// It is to be waited for again.
    Waiting,
    /// Nothing will come any more.
    Over,
    /// Calls of the command wait for an answer that nobody can give, so it has to be ended.
    Lost,
}

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

    /// Attends to what there is, without waiting; answers up to `limit` calls. What to wait for may be another descriptor
    /// afterwards.
    pub(crate) fn attend(&self, limit: usize) -> Attended {
        let mut watched = self.lock();
        if watched.witness.is_none() {
            watched.hear();
        }
        let Watched { warden, witness, .. } = &mut *watched;
        match (witness, warden) {
            (Some(witness), _) => match witness.answer(limit) {
                State::Waiting => Attended::Waiting,
                State::Over => Attended::Over,
            },
            (None, Some(warden)) if warden.has_lost_witness() => Attended::Lost,
            (None, Some(warden)) if !warden.over => Attended::Waiting,
            _ => Attended::Over,
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
