//! The warden: a small process between bubblewrap's init and the shell, which tells the library what bubblewrap does
//! not: that the sandbox stands, and how the shell really ended.
//!
//! It is a program like the guard: freestanding, embedded in the library, executed from memory. Bubblewrap executes it
//! inside the sandbox with `argv = [PATH, FLAGS, SHELL, ARG0, ARGS…]`, where FLAGS is `-` and perhaps letters (see
//! `shell.rs`), and these descriptors:
//!
//! | number | what |
//! |---|---|
//! | 0, 1 | `/dev/null` |
//! | 2 | where the messages of bubblewrap go |
//! | 3 | the text of a long command, passed on to the shell if the flags say so |
//! | 4 | the socket for its messages |
//! | 7, 8, 9 | the command's stdin, stdout and stderr |
//! | 11 | the command's environment |
//! | 12 | the witness's filter, if the flags say so |
//!
//! The command's pipes have these numbers because bubblewrap's own processes, which live as long as anything in the
//! sandbox does, keep 0, 1 and 2 and close all others. The environment comes as a file because variables that are meant
//! for the command (`LD_PRELOAD`) must not act on bubblewrap, which runs outside of the sandbox, and because
//! bubblewrap changes `PWD`.
//!
//! Then it waits for the shell, and exits with the shell's code, or 128 and the signal as shells do. Of its own it has
//! 2 (not started as described), 125 (nothing to wait for) and 126 (no shell could be started; the message says why).
#![no_std]
#![no_main]
// The loops of `memcpy` and its like must not be compiled into calls of themselves.
#![no_builtins]

#[allow(dead_code, reason = "shared with the guard, which uses more of it")]
#[path = "../../tree/guard/calls.rs"]
mod calls;
mod message;
mod own_calls;
mod shell;
#[path = "../../tree/guard/start.rs"]
mod start;
#[allow(dead_code, reason = "shared with the guard, which uses more of it")]
#[path = "../../tree/sys.rs"]
mod sys;

use message::{kind, step, Message, SCRIPT, STATUS};
use shell::Shell;
use start::Arguments;

fn main(arguments: Arguments) -> u8 {
    // Whoever signals the sandbox means the command. What ends the warden is the end of the shell, or SIGKILL.
    calls::block_all_signals();
    calls::set_name(c"dsh-warden");
    // The command is the same user's: it must not get at the socket.
    own_calls::make_undumpable();
    // Fails when it has one of its own already.
    let _ = own_calls::set_session();
    let (Some(flags), Some(program)) = (arguments.get(1), arguments.get(2)) else { return 2 };
    tell(Message { kind: kind::STARTED, ..Message::default() });
    let shell = match Shell::prepare(flags.to_bytes(), program, arguments.from(3)) {
        Ok(shell) => shell,
        Err(errno) => return give_up(step::ENVIRONMENT, errno),
    };
    match own_calls::fork() {
        Ok(0) => {
            let (step, errno) = shell.execute();
            give_up(step, errno);
            127
        }
        Ok(child) => wait_for(child),
        Err(errno) => give_up(step::CLONE, errno),
    }
}

fn wait_for(child: i32) -> u8 {
    // Above all the command's pipes: whoever reads them waits for all holders.
    own_calls::close(SCRIPT);
    own_calls::close_from(STATUS + 1);
    let Ok(end) = own_calls::wait_for(child) else { return 125 };
    tell(end);
    match end.value & 0x7f {
        0 => (end.value >> 8) as u8,
        signal => 128 + signal as u8,
    }
}

fn tell(message: Message) {
    own_calls::send(STATUS, &message, None);
}

fn give_up(step: u32, errno: i32) -> u8 {
    tell(Message { kind: kind::FAILED, step, value: errno, ..Message::default() });
    126
}
