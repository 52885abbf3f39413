//! Runs shell commands for AI agents: bounded output, hard timeouts, and process trees that really die.
#![deny(missing_docs)]
#![allow(dead_code)]
mod cancel;
mod config;
mod engine;
mod environment;
mod error;
mod event;
mod executor;
mod fd;
mod forked;
mod launch;
mod live;
mod mark;
mod output;
mod process;
mod read;
mod request;
mod result;
mod shutdown;
mod spawn;
mod tree;
pub use cancel::CancelToken;
pub use config::{Config, Keep};
pub use error::{Error, ErrorKind, Result, Stage};
pub use event::{Event, EventKind};
pub use executor::{Executor, Stats};
pub use process::{Process, ProcessInfo, Status, Stream};
pub use read::{Chunk, Reading};
pub use request::{Request, Spec, Survivors};
pub use result::{Captured, Exit, Outcome, RunResult, StopBy, StopStage, Survivor, Usage};
pub use spawn::SpawnPath;
