//! The guard: a small process that ends every tree of an executor when its host has died.
//!
//! It is a program of its own, without libc and with its own entry point, compiled by the build script, embedded in the
//! library and executed from memory. So the library stays one file, and the guard holds nothing of the host's memory.
//!
//! It is started in a session of its own with `argv = ["dsh-guard"]` or `["dsh-guard", "no-pidfd"]`, an empty
//! environment, and these descriptors:
//!
//! | number | what |
//! |---|---|
//! | 0 | read end of the life pipe, whose write end the host holds |
//! | 1 | pidfd of the host, or `/dev/null` with `no-pidfd` |
//! | 2 | `/dev/null` |
//! | 3 | the ledger |
//!
//! Then it sleeps until the host is gone (end of file on the pipe, or the pidfd says so, which also works while a fork
//! of the host holds the pipe) or until the executor has ended in good order (a byte `Q`). Exit codes: 0 done, 1 a
//! panic, 2 no life pipe, 3 no ledger, 4 no process table.
#![no_std]
#![no_main]
// The loops of `memcpy` and its like must not be compiled into calls of themselves.
#![no_builtins]

extern crate alloc;

mod calls;
mod ending;
mod heap;
mod ledger;
mod start;
#[path = "../sys.rs"]
mod sys;
#[path = "../table/mod.rs"]
mod table;

use calls::{PollFd, POLLHUP, POLLIN, POLLNVAL};
use ending::Ending;
use ledger::View;
use start::Arguments;
use sys::Fd;

const LIFE_PIPE: i32 = 0;
const HOST_PIDFD: i32 = 1;
const LEDGER: i32 = 3;

fn main(arguments: Arguments) -> u8 {
    // Only SIGKILL and SIGSTOP get through: a closed terminal or a Ctrl-C must not take the guard with the host.
    calls::block_all_signals();
    calls::set_name(c"dsh-guard");
    calls::raise_descriptor_limit();
    let host = calls::parent();
    let ledger_fd = Fd::from_raw(LEDGER);
    let Some(ledger) = View::map(&ledger_fd) else { return 3 };
    let mut life = Life { pipe: Fd::from_raw(LIFE_PIPE), closed: false };
    let pidfd = (arguments.get(1) != Some(c"no-pidfd")).then_some(HOST_PIDFD);
    match life.wait_for_the_end(pidfd) {
        End::Host => Ending::new(&ledger, life, host).run(),
        End::Executor => 0,
        End::Broken => 2,
    }
}

/// Why there is nothing left to wait for.
enum End {
    /// The host is gone.
    Host,
    /// The executor said that it has ended.
    Executor,
    /// The life pipe is not there.
    Broken,
}

/// The pipe from the host.
struct Life {
    pipe: Fd,
    /// Nobody holds the write end any more: neither the host, nor a fork of it, nor a child that is being started.
    closed: bool,
}

impl Life {
    fn wait_for_the_end(&mut self, mut pidfd: Option<i32>) -> End {
        loop {
            let mut watched = [PollFd::new(LIFE_PIPE), PollFd::new(pidfd.unwrap_or(-1))];
            if calls::poll(&mut watched, None).is_err() {
                continue;
            }
            let [pipe, host] = watched;
            if pipe.answered & POLLNVAL != 0 {
                return End::Broken;
            }
            // The pipe first: a host that ended its executor and then itself has said so.
            if pipe.answered & (POLLIN | POLLHUP) != 0 && self.read() {
                return End::Executor;
            }
            if self.closed || host.answered & (POLLIN | POLLHUP) != 0 {
                return End::Host;
            }
            if host.answered != 0 {
                pidfd = None;
            }
        }
    }

    /// Reads what is there, which must be something. True for the word that the executor has ended.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 16];
        match self.pipe.read(&mut bytes) {
            Ok(0) | Err(_) => {
                self.closed = true;
                false
            }
            Ok(length) => bytes[..length].contains(&b'Q'),
        }
    }
}
