//! The state machine of a command: from its start until nothing of it is alive.
//!
//! [`Tending::step`] looks at everything that may have changed, does what is due, and says when it wants to be called
//! again. It belongs to the one thread that drives the process; a foreground run that leaves something behind hands it
//! over to the reaper as it is. It never waits, and it reads the process table only when it was given one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::process::{Core, Settlement};
use crate::request::Survivors;
use crate::result::{Exit, StopBy, StopStage, Survivor, Usage};
#[cfg(target_os = "linux")]
use crate::sandbox::watch::Watch;
use crate::sandbox::Confinement;
use crate::tree::table::Table;
use crate::tree::{Leader, LeaderExit, Tree};

/// How long after SIGTERM the process table is first read, unless the leader ends before: one look is enough then.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// How long the pipes of a leader that has ended may take to be seen closed, and those who wait for its end to be told.
const TOLD_FIRST: Duration = Duration::from_millis(2);
/// The least time between two looks, doubled each time: a tree that forks in a loop is followed, but not at any price.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(50);
/// How long after SIGKILL something may go on before it is called a survivor. A shutdown promises the grace and 1 s.
const GIVE_UP: Duration = Duration::from_millis(850);
/// How long what wrapped a shell may take to end once nothing else is left.
const WRAPPER_ENDS: Duration = Duration::from_millis(500);
/// How often a member is looked at whose end no descriptor tells of.
const CHECK: Duration = Duration::from_millis(20);

/// The terms under which a process is tended.
pub(crate) struct Terms {
    /// It settles only once a forced stop is through, and what comes later belongs to no result.
    pub(crate) foreground: bool,
    /// When it times out.
    pub(crate) deadline: Option<Instant>,
    pub(crate) drain: Duration,
    pub(crate) survivors: Survivors,
}

/// A forced stop under way.
struct Stop {
    stage: StopStage,
    kill_at: Option<Instant>,
    give_up_at: Option<Instant>,
}

/// What a step is told.
pub(crate) struct Look<'a> {
    pub(crate) now: Instant,
    /// Whether the leader may have ended since the last step.
    pub(crate) leader: bool,
    /// The process table, when the last step wanted it: or the errno of trying to read it.
    pub(crate) table: Option<Result<&'a Table, i32>>,
}

/// What a step asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    /// When to call again at the latest.
    pub(crate) at: Option<Instant>,
    /// Call again at once, with the process table.
    pub(crate) table: bool,
    /// Read what is left in the pipes, mark the process as drained, and call again.
    pub(crate) drain: bool,
    /// The process has settled.
    pub(crate) settled: bool,
    /// Nothing is left to be tended.
    pub(crate) over: bool,
}

pub(crate) struct Tending {
    core: Arc<Core>,
    tree: Tree,
    confinement: Option<Box<Confinement>>,
    terms: Terms,
    stop: Option<Stop>,
    exited: bool,
    drain_at: Option<Instant>,
    /// Until when a wrapper that is all there is left is waited for.
    wrapper_until: Option<Instant>,
    drain_wanted: bool,
    settled: bool,
    /// What a look at the table decided: nothing of the tree is alive.
    gone: bool,
    /// What is left in the pipes has been asked for since.
    last_read: bool,
    given_up: bool,
    look_at: Option<Instant>,
    look_again: Duration,
    /// Looks in a row that found nobody.
    clean_looks: u32,
    /// Whether any look found somebody besides the leader.
    found_members: bool,
    /// The process table can't be read.
    blind: bool,
    /// The leader was given up although it lives on.
    leader_lost: bool,
}

impl Tending {
    pub(crate) fn new(core: Arc<Core>, leader: Leader, terms: Terms, confinement: Option<Box<Confinement>>) -> Tending {
        let mut tree = Tree::new(leader, core.id);
        if confinement.as_ref().is_some_and(|confinement| confinement.wraps()) {
            tree.spare_leader();
        }
        Tending {
            core,
            tree,
            confinement,
            terms,
            stop: None,
            exited: false,
            drain_at: None,
            wrapper_until: None,
            drain_wanted: false,
            settled: false,
            gone: false,
            last_read: false,
            given_up: false,
            look_at: None,
            look_again: LOOK_AGAIN,
            clean_looks: 0,
            found_members: false,
            blind: false,
            leader_lost: false,
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// What to wait on for the leader's end, until it has been seen.
    pub(crate) fn unended_leader(&self) -> Option<std::os::fd::RawFd> {
        self.tree.leader().pidfd().filter(|_| !self.exited)
    }

    /// What is to be attended to for as long as the command lives.
    #[cfg(target_os = "linux")]
    pub(crate) fn watch(&self) -> Option<Watch> {
        self.confinement.as_ref().and_then(|confinement| confinement.watch())
    }

    /// When it times out.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.terms.deadline
    }

    /// Whether each of its steps is a short one until it asks for the process table or a drain: its end is told by a
    /// descriptor, and nothing has to be found out about a confinement.
    pub(crate) fn is_plain(&self) -> bool {
        self.confinement.is_none() && self.tree.leader().pidfd().is_some()
    }

    /// Whether descendants are known to be alive, whose ends have to be seen.
    pub(crate) fn has_members(&self) -> bool {
        self.tree.has_members()
    }

    /// Whether the leader's end has been seen.
    pub(crate) fn leader_exited(&self) -> bool {
        self.exited
    }

    pub(crate) fn step(&mut self, look: Look<'_>) -> Next {
        let now = look.now;
        self.tree.any_alive(); // lets go of those that have ended, whose descriptors would wake the driver for ever
        if look.leader || self.tree.leader().pidfd().is_none() {
            self.see_exit(now);
        }
        self.see_deadline(now);
        if self.stop.is_none() && self.core.ordered_stop().is_some() {
            self.begin_stop(look.table, now);
        } else if let Some(table) = look.table {
            self.take_look(table, now);
        }
        self.escalate(now);
        self.plan_look(now);
        self.settle(now);
        self.next(now)
    }

    fn see_exit(&mut self, now: Instant) {
        if self.exited {
            return;
        }
        if let Some(exit) = self.tree.leader().exit() {
            self.exited = true;
            self.drain_at = now.checked_add(self.terms.drain);
            self.wrapper_until = now.checked_add(WRAPPER_ENDS);
            let exit = match &mut self.confinement {
                Some(confinement) => confinement.shell_exit(exit),
                None => exit,
            };
            self.core.leader_exited(exit);
        }
    }

    /// A deadline that passes after the leader has exited is no timeout, so its exit is looked for first.
    fn see_deadline(&mut self, now: Instant) {
        if self.exited || self.terms.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.terms.deadline = None;
        self.see_exit(now);
        if !self.exited {
            self.core.order_stop(StopBy::Timeout);
        }
    }

    fn begin_stop(&mut self, table: Option<Result<&Table, i32>>, now: Instant) {
        let unreadable = matches!(table, Some(Err(_)));
        if !self.tree.find_descendants(table.and_then(Result::ok)) && !unreadable {
            self.look_at = Some(now); // comes again with the table
            return;
        }
        self.see_exit(now);
        if self.exited {
            self.core.ended_unstopped();
        }
        self.core.unmark_drained();
        let leader_runs = !self.exited;
        let left_behind = self.tree.any_alive();
        self.tree.signal(StopStage::Term);
        if leader_runs || left_behind {
            self.core.enter_stage(StopStage::Term);
        }
        let kill_at = now.checked_add(self.core.grace);
        self.stop = Some(Stop { stage: StopStage::Term, kill_at, give_up_at: None });
        self.look_at = Some(if leader_runs { now + FIRST_LOOK } else { now });
        self.clean_looks = 0;
    }

    fn take_look(&mut self, table: Result<&Table, i32>, now: Instant) {
        self.look_at = None;
        let stage = self.stop.as_ref().map_or(StopStage::None, |stop| stop.stage);
        match table {
            Ok(table) => self.tree.absorb(table, stage),
            Err(errno) => return self.look_blindly(errno, now),
        }
        if self.tree.any_alive() {
            self.clean_looks = 0;
            self.found_members = true;
            if stage != StopStage::None {
                self.core.enter_stage(stage);
            }
            return;
        }
        self.clean_looks += 1;
        // A table is not read at one moment: something that forks and ends as it is read can be missed once.
        let enough = if self.found_members && self.stop.is_some() { 2 } else { 1 };
        if self.leader_lost && self.tree.leader().exit().is_none() {
            self.look_at = now.checked_add(CHECK);
        } else if self.exited && self.clean_looks >= enough {
            self.gone = true;
        }
    }

    /// Without a process table the group is all that is known. Whether it is empty can be asked only once the leader
    /// is reaped, and where the group is signalled by number that has to wait until SIGKILL was sent. A table that can't
    /// be read for want of descriptors or memory is tried again: a forced stop does not call a tree ended unseen.
    fn look_blindly(&mut self, errno: i32, now: Instant) {
        self.blind = true;
        let in_want = matches!(errno, libc::EMFILE | libc::ENFILE | libc::ENOMEM);
        if in_want && self.stop.is_some() && !self.given_up {
            self.look_at = now.checked_add(CHECK);
            return;
        }
        let group_is_done_with = match &self.stop {
            None => true,
            Some(stop) => stop.stage == StopStage::Kill || self.tree.leader().outlives_reaping(),
        };
        if self.exited && group_is_done_with {
            self.tree.leader_mut().reap();
            self.gone = self.tree.leader().group_is_empty();
        }
        if !self.gone {
            self.look_at = now.checked_add(CHECK);
        }
    }

    fn escalate(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        let Some(stop) = &mut self.stop else { return };
        if self.gone || self.given_up {
            return;
        }
        if stop.stage == StopStage::Term && due(stop.kill_at) {
            stop.stage = StopStage::Kill;
            stop.give_up_at = now.checked_add(GIVE_UP);
            if !self.exited || self.tree.any_alive() {
                self.core.enter_stage(StopStage::Kill);
            }
            self.tree.signal(StopStage::Kill);
            self.look_again = LOOK_AGAIN;
            self.look_at = Some(now);
        } else if stop.stage == StopStage::Kill && due(stop.give_up_at) {
            self.given_up = true;
            let mut survivors = self.tree.survivors();
            if !self.exited {
                survivors.push(Survivor { pid: self.core.pid, start_time: 0 });
            }
            self.core.set_survivors(survivors);
        }
    }

    /// Once nobody who is known is alive, the table is looked at for those who are not known yet.
    fn plan_look(&mut self, now: Instant) {
        let watches_for_end = self.stop.is_some() || self.settled;
        if self.gone || !self.exited || !watches_for_end || self.tree.any_alive() {
            return;
        }
        let soon = match self.clean_looks {
            // Its pipes are about to close as well, if nobody else holds them: it settles before the table is read. Nor is
            // that to take the processor from those who are told that it has settled.
            0 if self.core.streams_open() || !self.terms.foreground => now + TOLD_FIRST,
            0 => now,
            _ => now + self.look_again,
        };
        if self.look_at.is_none() {
            self.look_again = (self.look_again * 2).min(LOOK_AGAIN_MAX);
            self.look_at = Some(soon);
        } else if self.clean_looks == 0 && !self.found_members {
            self.look_at = self.look_at.min(Some(soon)); // the first look need not wait any longer
        }
    }

    fn settle(&mut self, now: Instant) {
        // A forced stop ends what holds the pipes; whether something still does is asked when it is through.
        let stopping = self.stop.is_some() && !self.gone && !self.given_up;
        let drained = !stopping && self.drain_at.is_some_and(|at| now >= at);
        let complete = self.exited && !self.core.streams_open();
        // The limit says how long is waited for more. What has come in time is read, however late its reader is.
        self.drain_wanted = !self.settled && !complete && (drained || self.given_up) && !self.core.is_drained();
        if self.drain_wanted {
            return;
        }
        if !self.settled && (complete || (self.exited && drained)) {
            match self.stop {
                None => self.settle_at_its_own_end(complete, now),
                Some(_) if self.terms.foreground && stopping => {}
                Some(_) => self.announce_settled(complete),
            }
        }
        if self.given_up && !self.settled {
            if !self.exited {
                // SIGKILL could not end it (it sleeps in the kernel). Its end is unknown, and nobody waits for ever.
                (self.exited, self.leader_lost) = (true, true);
                self.core.leader_exited(LeaderExit { exit: Exit::Unknown, usage: Usage::default(), at: now });
            }
            self.announce_settled(!self.core.streams_open());
        }
        if self.gone && self.settled {
            // Whoever hears that nothing is alive expects to find all output, and its end: the reader may not have come to
            // that yet.
            if !std::mem::replace(&mut self.last_read, true) {
                self.core.unmark_drained();
            }
            self.drain_wanted = !self.terms.foreground && self.core.streams_open() && !self.core.is_drained();
            if self.drain_wanted {
                return;
            }
            self.tree.leader_mut().reap();
            self.core.quiesce();
        }
    }

    /// The command has ended without being stopped. In the plain case, one system call tells that nothing is left.
    fn settle_at_its_own_end(&mut self, complete: bool, now: Instant) {
        let ends_survivors = self.terms.survivors == Survivors::Kill;
        let mut looked = self.clean_looks > 0 || self.found_members || self.blind;
        if !looked && complete && !ends_survivors {
            self.tree.leader_mut().reap();
            self.gone = self.tree.leader().group_is_empty();
            looked = self.gone;
        }
        if !looked {
            self.look_at = Some(now);
            return;
        }
        if self.tree.only_wrapper_left() && self.wrapper_until.is_some_and(|until| now < until) {
            self.look_at = self.wrapper_until; // its end is watched, and comes before
            return;
        }
        if ends_survivors && (self.tree.any_alive() || self.blind) {
            self.core.order_stop(StopBy::Survivors); // begun with the next step, at once
            self.look_at = Some(now);
            return;
        }
        self.core.set_survivors(self.tree.survivors());
        self.announce_settled(complete);
        self.tree.leader_mut().reap();
    }

    fn announce_settled(&mut self, complete: bool) {
        let held_by = if complete { Vec::new() } else { self.tree.holders(&self.core.open_pipes()) };
        self.settled = true;
        if let Some(confinement) = &mut self.confinement {
            self.core.conclude(confinement);
        }
        if self.terms.foreground {
            self.core.close_streams();
        }
        self.core.settle(Settlement { pipes_held: !complete, held_by });
    }

    fn next(&self, now: Instant) -> Next {
        let over = self.gone && self.settled && !self.drain_wanted;
        let mut at = None;
        let mut by = |moment: Option<Instant>| at = [at, moment].into_iter().flatten().min();
        if !over {
            by(self.look_at);
            if !self.exited {
                by(self.terms.deadline);
            }
            match self.stop.as_ref().filter(|_| !self.given_up && !self.gone) {
                Some(stop) if stop.stage == StopStage::Term => by(stop.kill_at),
                Some(stop) => by(stop.give_up_at),
                None if !self.settled && !self.drain_wanted => by(self.drain_at),
                None => {}
            }
            let blind = !self.exited && self.tree.leader().pidfd().is_none();
            if blind || self.tree.has_unwatchable() {
                by(now.checked_add(CHECK));
            }
        }
        let table = !over && self.look_at.is_some_and(|at| now >= at);
        Next { at, table, drain: self.drain_wanted, settled: self.settled, over }
    }
}

impl Drop for Tending {
    /// Let go before it is over only when the thread that drove it was lost to a panic: then nothing is left running
    /// that nobody owns.
    fn drop(&mut self) {
        if !(self.gone && self.settled) {
            self.tree.signal(StopStage::Kill);
        }
    }
}
