//! The end of the trees, once the host is gone.
//!
//! Pass after pass over the process table: SIGTERM and SIGCONT to whoever is new, after the grace SIGKILL to whoever
//! is left, until two passes in a row find nobody (one may miss a process that is just being born or is in the middle
//! of an exec) and no command can be in the middle of its start.

use alloc::{vec, vec::Vec};

use crate::calls::{self, PollFd, EINVAL, ESRCH, SIGCONT, SIGKILL, SIGTERM};
use crate::ledger::{Cell, View};
use crate::sys::Fd;
use crate::table::{entry_of, Entry, Root, Table};
use crate::Life;

/// How long those who outlive SIGKILL (unkillable sleeps, another user's processes) are tried again.
const KILLING_MS: u64 = 10_000;
/// How long a child that was being started when the host died is waited for.
const STARTING_MS: u64 = 5_000;
/// Between two passes that found nobody.
const CONFIRM_MS: u64 = 20;
/// Between two passes while everyone has been told to end.
const RESCAN_MS: u64 = 250;
/// From one process's end to the next pass.
const SETTLE_MS: u64 = 4;
/// Descriptors that are not spent on watching, so that a pass can open what it needs.
const SPARE_DESCRIPTORS: u64 = 16;

pub(crate) struct Ending<'a> {
    ledger: &'a View,
    life: Life,
    /// Who was the parent at the start: the host, if it was alive then.
    host: i32,
    /// When the host's end was seen, in start-time ticks.
    host_end: u64,
    /// Everyone found so far and not known to be dead, by pid.
    watched: Vec<Watched>,
    /// For each cell, whether its session was seen empty.
    empty: Vec<bool>,
    /// The first descriptor number that is not kept open.
    descriptors: u64,
}

/// A process that was found to be a member. It stays one, also when what it was found by (its parent, its session's
/// leader) is gone.
struct Watched {
    pid: i32,
    start_time: u64,
    /// None where there are no pidfds or no more descriptors.
    pidfd: Option<Fd>,
    /// The last signal it got.
    sent: Option<i32>,
}

impl Watched {
    /// None when the process is gone.
    fn new(member: &Entry) -> Option<Self> {
        let mut watched = Self { pid: member.pid, start_time: member.start_time, pidfd: None, sent: None };
        match calls::pidfd_open(member.pid) {
            // Checked only once it is open: if the number has the same start time still, it had it all along.
            Ok(pidfd) if watched.is_itself() => watched.pidfd = Some(pidfd),
            Ok(_) | Err(ESRCH | EINVAL) => return None,
            // No such call here, or no descriptor for it.
            Err(_) => {}
        }
        Some(watched)
    }

    fn is_itself(&self) -> bool {
        entry_of(self.pid).is_some_and(|now| now.start_time == self.start_time)
    }

    /// Sends a signal, if the process has not had it. False when it is gone.
    fn signal(&mut self, signal: i32) -> bool {
        if self.sent == Some(signal) {
            return true;
        }
        if self.send(signal) == Err(ESRCH) {
            return false;
        }
        if signal == SIGTERM {
            // A stopped process sees nothing but SIGKILL until it goes on.
            let _ = self.send(SIGCONT);
        }
        self.sent = Some(signal);
        true
    }

    fn send(&self, signal: i32) -> Result<usize, i32> {
        if let Some(pidfd) = &self.pidfd {
            let answer = calls::pidfd_send_signal(pidfd, signal);
            if matches!(answer, Ok(_) | Err(ESRCH)) {
                return answer;
            }
        }
        // By number only here, right after a look at who has it.
        if !self.is_itself() {
            return Err(ESRCH);
        }
        calls::kill(self.pid, signal)
    }
}

impl<'a> Ending<'a> {
    pub(crate) fn new(ledger: &'a View, life: Life, host: i32) -> Self {
        Self {
            ledger,
            life,
            host,
            host_end: calls::now_ticks(),
            watched: Vec::new(),
            empty: Vec::new(),
            descriptors: calls::descriptor_limit().saturating_sub(SPARE_DESCRIPTORS),
        }
    }

    /// Ends them all; the exit code.
    pub(crate) fn run(mut self) -> u8 {
        let seen = calls::now_ms();
        let grace_end = seen.saturating_add(self.ledger.grace_ms());
        let give_up = grace_end.saturating_add(KILLING_MS);
        let mut quiet_passes = 0;
        loop {
            let now = calls::now_ms();
            let terminating = now < grace_end;
            let starting = self.may_be_starting() && now < seen.saturating_add(STARTING_MS);
            let answer = self.pass(if terminating { SIGTERM } else { SIGKILL });
            let found = answer != Ok(false);
            quiet_passes = if found || starting { 0 } else { quiet_passes + 1 };
            if quiet_passes == 2 || now >= give_up {
                return if answer.is_ok() { 0 } else { 4 };
            }
            // While they have their grace there is little to do before one of them ends: what those start that ignore
            // SIGTERM is told so too. Those that can't be watched, and those that outlive SIGKILL, are looked for again.
            let unwatched = self.watched.iter().any(|watched| watched.pidfd.is_none());
            self.wait(match (found, terminating) {
                (true, true) if !unwatched && !starting && answer.is_ok() => RESCAN_MS.min(grace_end - now),
                (false, _) if !starting => CONFIRM_MS,
                _ => 50,
            });
        }
    }

    /// Whether a child may be on its way that has not stored its pid: there is a cell for it, and a holder of the
    /// life pipe, which every such child is until it has done so.
    fn may_be_starting(&self) -> bool {
        !self.life.closed && (self.ledger.is_full() || self.ledger.cells().any(|cell| cell == Cell::Reserved))
    }

    /// Looks at all processes, signals the members that have not had this signal, and remembers who is left. Whether
    /// there were any, even if they are gone by now: they may have left children. Fails when there is no table to look
    /// at.
    fn pass(&mut self, signal: i32) -> Result<bool, i32> {
        let table = Table::read(self.ledger.executor_id(), 0)?;
        let roots = self.roots(&table);
        // Nobody's pid: the parent, which is the host if it lives (it can exec itself and so close the pipe), or
        // whoever takes in orphans.
        let parent = calls::parent();
        let mut found = false;
        let mut before = core::mem::take(&mut self.watched).into_iter().peekable();
        for member in table.members(&roots, true) {
            // Both are sorted by pid. Who is not a member any more is dead.
            while before.next_if(|watched| watched.pid < member.pid).is_some() {}
            let known = before.next_if(|watched| watched.pid == member.pid && watched.start_time == member.start_time);
            if member.pid == parent {
                continue;
            }
            found = true;
            let Some(mut watched) = known.or_else(|| Watched::new(member)) else { continue };
            if watched.signal(signal) {
                watched.pidfd.take_if(|pidfd| pidfd.number() as u64 >= self.descriptors);
                self.watched.push(watched);
            }
        }
        Ok(found)
    }

    /// What is known of the trees.
    ///
    /// The host can't vouch for its children any more: a leader that it had not reaped may have been reaped since, by
    /// whoever took in the orphans, and its number may be someone else's. So a process with the number of an unreaped
    /// leader counts as that leader only if it has our mark, or is a child of the host or of the one who took in the
    /// guard (who is the same for all the host's children) and started before the host's end was seen.
    /// If nobody has the number, the session can only be the leader's, until it has been seen empty.
    fn roots(&mut self, table: &Table) -> Vec<Root> {
        let parent = calls::parent();
        let known = self.watched.iter().map(|watched| Root {
            leader: watched.pid,
            leader_start: Some(watched.start_time),
            reaped: false,
            process: None,
        });
        let mut roots: Vec<Root> = known.collect();
        for (index, cell) in self.ledger.cells().enumerate() {
            if index == self.empty.len() {
                self.empty.push(false);
            }
            let (pid, reaped) = match cell {
                Cell::Live(pid) => (pid, false),
                Cell::Reaped(pid) => (pid, true),
                Cell::Free | Cell::Reserved => continue,
            };
            if self.empty[index] {
                continue;
            }
            let root = Root { leader: pid, leader_start: None, reaped: true, process: None };
            match table.get(pid) {
                None if table.is_empty_session(pid) => self.empty[index] = true,
                None => roots.push(root),
                Some(_) if reaped => {}
                Some(entry) => {
                    let orphan = entry.ppid == self.host || entry.ppid == parent;
                    if entry.mark.is_some() || (orphan && entry.start_time <= self.host_end + 1) {
                        roots.push(Root { leader_start: Some(entry.start_time), reaped: false, ..root });
                    }
                }
            }
        }
        roots
    }

    /// Waits until someone ends, the life pipe closes, or the time is over.
    fn wait(&mut self, timeout_ms: u64) {
        let life = if self.life.closed { -1 } else { crate::LIFE_PIPE };
        let mut fds = vec![PollFd::new(life)];
        fds.extend(self.watched.iter().filter_map(|watched| Some(PollFd::new(watched.pidfd.as_ref()?.number()))));
        if calls::poll(&mut fds, Some(timeout_ms)).is_err() {
            // Never a busy loop, whatever the reason.
            let _ = calls::poll(&mut [], Some(CONFIRM_MS));
        }
        if fds[0].answered != 0 {
            self.life.read();
        }
        if !self.watched.is_empty() {
            // Those who end together are seen together.
            let _ = calls::poll(&mut [], Some(SETTLE_MS));
        }
    }
}
