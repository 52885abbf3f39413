//! What carries an executor's mark although no live command is known to own it: daemons that left their command's
//! session and outlived it unseen.

use std::time::{Duration, Instant};

use super::member::{retain_alive, Member};
use super::table::Table;
use super::Census;
use crate::result::StopStage;

/// Strays of one executor, looked for once it ends.
pub(crate) struct Strays {
    census: Census,
    members: Vec<Member>,
}

/// The longest wait between two looks at the process table.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Strays {
    pub(crate) fn new(census: Census) -> Strays {
        Strays { census, members: Vec::new() }
    }

    /// Looks for strays and tells them. Marks of the processes in `except` are somebody else's business. Whether any
    /// stray is alive; `None` when that can't be seen.
    pub(crate) fn tell(&mut self, stage: StopStage, except: &[u64]) -> Option<bool> {
        let table: Table = self.census.take().ok()?;
        for entry in table.members(&[], true) {
            // One without a mark descends from a marked one; from whom is not asked while some are excepted.
            let excepted = entry.mark.map_or(!except.is_empty(), |mark| except.contains(&mark));
            if !excepted && !self.members.iter().any(|member| member.is(entry)) {
                self.members.push(Member::new(entry));
            }
        }
        for member in &mut self.members {
            member.tell(stage);
        }
        retain_alive(&mut self.members);
        Some(!self.members.is_empty())
    }

    /// Waits for their end, from `kill_at` on with SIGKILL. Whether none is left at `until`; `None` when that can't be
    /// seen.
    pub(crate) fn end(&mut self, kill_at: Option<Instant>, until: Option<Instant>) -> Option<bool> {
        loop {
            let now = Instant::now();
            let passed = |moment: Option<Instant>| moment.is_some_and(|moment| now >= moment);
            let stage = if passed(kill_at) { StopStage::Kill } else { StopStage::Term };
            match self.tell(stage, &[]) {
                Some(true) if !passed(until) => self.pause(),
                Some(alive) => return Some(!alive),
                None => return None,
            }
        }
    }

    fn pause(&self) {
        let mut polled: Vec<libc::pollfd> = self
            .members
            .iter()
            .filter_map(Member::pidfd)
            .take(256)
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: the array is as long as said, and its descriptors live in `members`.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, LOOK_AGAIN.as_millis() as i32) };
    }
}
