//! The end of an executor: every tree that it owns is ended, also what has left its tree unseen.

use std::time::{Duration, Instant};

use super::Inner;
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::result::StopStage;
use crate::tree::Strays;

/// What a shutdown may take beyond the grace.
const BEYOND_GRACE: Duration = Duration::from_secs(1);

/// How long the reaper may take from the end of a command's grace until it has killed what is left.
const REAPER_FIRST: Duration = Duration::from_millis(150);

/// Ends everything; see [`Executor::shutdown`](crate::Executor::shutdown).
pub(super) fn shutdown(inner: &Inner, limit: Option<Duration>) -> Result<()> {
    let began = Instant::now();
    let live = inner.live.close();
    // Live commands keep the grace they were started with.
    let grace = live.iter().map(|core| core.grace).chain([inner.budgets.read().grace()]).max().unwrap_or_default();
    let until = began.checked_add(limit.unwrap_or(grace.saturating_add(BEYOND_GRACE)));

    // One caller does the rest, the others wait for it.
    let ended = match until {
        Some(until) => inner.ending.try_lock_until(until),
        None => Some(inner.ending.lock()),
    };
    let Some(mut ended) = ended else {
        return Err(late(inner));
    };
    if let Ending::Ahead = *ended {
        let mut strays = inner.has_started_any().then(|| Strays::new(*inner.census()));
        if let Some(strays) = &mut strays {
            let live: Vec<u64> = live.iter().map(|core| core.id).collect();
            strays.tell(StopStage::Term, &live);
        }
        *ended = Ending::Begun { at: began, strays };
    }
    let Ending::Begun { at, strays } = &mut *ended else {
        return Ok(());
    };
    // The grace counts from the first call, as one with a short limit may be repeated. What is left of the live commands
    // at its end is killed, and the stage taken down, by the reaper. Only then come the strays, among whom nothing of a
    // live command is told apart.
    let kill_at = at.checked_add(grace.saturating_add(REAPER_FIRST));
    let emptied = inner.live.wait_until_empty([kill_at, until].into_iter().flatten().min());
    if !emptied && until.is_some_and(|until| Instant::now() >= until) {
        return Err(late(inner));
    }
    let strays_ended = strays.as_mut().map_or(Some(true), |strays| strays.end(kill_at, until));
    if !inner.live.wait_until_empty(until) || strays_ended == Some(false) {
        return Err(late(inner));
    }
    // The threads first: the reaper watches the guard, and must not do so by a descriptor that is closed meanwhile.
    inner.engine.end();
    if let Some(guard) = &inner.guard {
        match strays_ended {
            Some(_) => guard.dismiss(),
            // Without a process table to be read here, the guard looks for strays by its own means.
            None => guard.leave_the_rest(until),
        }
    }
    let keep = inner.budgets.read().config().keep_spill_files;
    inner.spills.finish(keep);
    *ended = Ending::Over;
    Ok(())
}

/// How far the shutdown of an executor has come.
pub(super) enum Ending {
    Ahead,
    /// It began then; strays have been told to end.
    Begun {
        at: Instant,
        strays: Option<Strays>,
    },
    Over,
}

/// Lets go of what could not be ended in time: with the executor's last handle nobody is left who could wait for it. The
/// guard sees its pipe closed, and goes on trying.
pub(super) fn abandon(inner: &Inner) {
    inner.engine.end();
    inner.spills.finish(inner.budgets.read().config().keep_spill_files);
}

fn late(inner: &Inner) -> Error {
    let (live, _) = inner.live.counts();
    let message = format!("not everything could be ended in the given time; {live} commands are still live");
    Error::new(ErrorKind::TimedOut, Stage::Wait, message)
}
