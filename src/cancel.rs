//! Cancel tokens: one switch, thrown once, for any number of commands.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::process::Core;
use crate::result::StopBy;

/// Ends every command that was started with it, from any thread, once.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Mutex<Token>>);

#[derive(Default)]
struct Token {
    cancelled: bool,
    commands: Vec<Weak<Core>>,
}

impl CancelToken {
    /// A token that has not been cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels every command that runs with this token and every one that will be asked to. Does not wait.
    pub fn cancel(&self) {
        let commands = {
            let mut token = self.0.lock();
            token.cancelled = true;
            std::mem::take(&mut token.commands)
        };
        for core in commands.iter().filter_map(Weak::upgrade) {
            core.order_stop(StopBy::Cancel);
        }
    }

    /// Whether it has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().cancelled
    }

    /// Has the command stopped when this token is cancelled, or at once if it has been already.
    pub(crate) fn attach(&self, core: &Arc<Core>) {
        let mut token = self.0.lock();
        if token.cancelled {
            drop(token);
            core.order_stop(StopBy::Cancel);
            return;
        }
        // A token that serves thousands of commands must not remember them all.
        if token.commands.len() == token.commands.capacity() {
            token.commands.retain(|command| command.strong_count() > 0);
        }
        token.commands.push(Arc::downgrade(core));
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}
