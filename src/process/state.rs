//! What becomes of a process, one step after the other.

use super::{Settlement, Status};
use crate::result::{Exit, StopBy, StopStage, Survivor};
use crate::tree::LeaderExit;

/// The facts of a process that are shared between its driver and its handles.
///
/// It moves one way only: running, (stop ordered,) leader exited, settled, quiescent. The transitions are the methods;
/// whoever drives the process calls them, except `order_stop`, which anybody may.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) exit: Option<LeaderExit>,
    pub(super) cause: Option<StopBy>,
    pub(super) order: Option<StopBy>,
    pub(super) stage: StopStage,
    pub(super) settled: Option<Settlement>,
    pub(super) survivors: Vec<Survivor>,
    pub(super) quiescent: bool,
    pub(super) failed: bool,
}

impl State {
    /// A stop is wanted. Says whether there was still something to stop: the command had not ended and had not been
    /// told to. What it left behind is stopped all the same.
    pub(super) fn order_stop(&mut self, by: StopBy) -> bool {
        if self.quiescent {
            return false;
        }
        let first = self.order.is_none();
        if first {
            self.order = Some(by);
        }
        let running = self.exit.is_none() && self.cause.is_none();
        if running && by != StopBy::Survivors {
            self.cause = Some(by);
        }
        first && running
    }

    /// The leader has ended although nothing was signalled yet: whatever was ordered has not cut it short. But whoever
    /// killed it has been told that it was still to be killed, and that stands.
    pub(super) fn ended_unstopped(&mut self) {
        self.cause = self.cause.filter(|cause| *cause == StopBy::Kill);
    }

    pub(super) fn leader_exited(&mut self, exit: LeaderExit) {
        debug_assert!(self.exit.is_none(), "a leader exits once");
        self.exit = Some(exit);
    }

    pub(super) fn status(&self) -> Status {
        match (&self.settled, self.exit) {
            (None, _) | (_, None) => Status::Running,
            (Some(_), Some(exit)) => match (self.cause, exit.exit) {
                (Some(_), _) | (_, Exit::Signal { .. }) => Status::Killed,
                _ => Status::Completed,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::result::Usage;

    fn exited(exit: Exit) -> LeaderExit {
        LeaderExit { exit, usage: Usage::default(), at: Instant::now() }
    }

    #[test]
    fn the_first_cause_stands() {
        let mut state = State::default();
        assert!(state.order_stop(StopBy::Timeout));
        assert!(!state.order_stop(StopBy::Kill));
        assert_eq!((state.cause, state.order), (Some(StopBy::Timeout), Some(StopBy::Timeout)));
    }

    #[test]
    fn a_stop_after_the_exit_is_no_cause() {
        let mut state = State::default();
        state.leader_exited(exited(Exit::Code(0)));
        assert!(!state.order_stop(StopBy::Kill));
        assert_eq!((state.cause, state.order), (None, Some(StopBy::Kill)));
    }

    #[test]
    fn a_stop_that_came_too_late_to_signal_anything_is_no_cause() {
        let mut state = State::default();
        assert!(state.order_stop(StopBy::Cancel));
        state.leader_exited(exited(Exit::Code(0)));
        state.ended_unstopped();
        state.settled = Some(Settlement::default());
        assert_eq!((state.cause, state.order, state.status()), (None, Some(StopBy::Cancel), Status::Completed));
    }

    #[test]
    fn ending_survivors_is_no_cause() {
        let mut state = State::default();
        state.leader_exited(exited(Exit::Code(0)));
        state.order_stop(StopBy::Survivors);
        state.settled = Some(Settlement::default());
        assert_eq!((state.cause, state.status()), (None, Status::Completed));
    }

    #[test]
    fn a_process_that_was_killed_or_died_of_a_signal_is_killed() {
        for (cause, exit, status) in [
            (None, Exit::Code(3), Status::Completed),
            (None, Exit::Unknown, Status::Completed),
            (Some(StopBy::Kill), Exit::Code(0), Status::Killed),
            (None, Exit::Signal { number: 11, core_dumped: true }, Status::Killed),
        ] {
            let mut state = State { cause, ..State::default() };
            state.leader_exited(exited(exit));
            assert_eq!(state.status(), Status::Running);
            state.settled = Some(Settlement::default());
            assert_eq!(state.status(), status);
        }
    }

    #[test]
    fn nothing_is_stopped_once_nothing_is_alive() {
        let mut state = State { quiescent: true, ..State::default() };
        assert!(!state.order_stop(StopBy::Kill));
        assert_eq!(state.order, None);
    }
}
