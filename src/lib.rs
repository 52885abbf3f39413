//! Runs shell commands for AI agents: bounded output, hard timeouts, and process trees that really die.
//!
//! ```
//! use dsh::{Config, Executor, Exit};
//!
//! let executor = Executor::new(&Config::default())?;
//! let result = executor.run("echo hello; exit 3")?;
//! assert_eq!(result.stdout.bytes, b"hello\n");
//! assert_eq!(result.outcome.exit, Exit::Code(3));
//!
//! let server = executor.start("echo ready; exec sleep 60")?;
//! server.kill()?;
//! server.wait(None)?;
//! # Ok::<(), dsh::Error>(())
//! ```
//!
//! The same is there for C and everything that can call C: `include/dsh.h`, from `capi`.
//!
//! A map, from what a caller meets to what meets the kernel; each knows those below it:
//!
//! - `capi`: the C ABI, conversions only;
//! - `executor`: run, start, shutdown, and the launch of a command; `live` is the set of what it owns;
//! - `engine`: what drives a command to its end: the state machine (`tending`), the calling thread (`foreground`), and
//!   the two threads of an executor (`reader`, `reaper`);
//! - `process`, `read`, `event`, `cancel`: what is known of a process, and how it is read, announced and stopped;
//! - `request`, `config`, `environment`, `result`, `error`: what is asked, allowed, passed on and told;
//! - `sandbox`: confinement: the policy, what carries it out, and what becomes known of it;
//! - `output`: the tail in memory, the spill file, reads by offset;
//! - `tree`: the leader, its descendants, the process table, and the guard that outlives the host;
//! - `spawn`: creating the child; `mark`, `signals`, `fd`, `forked`: small things that many need.
#![deny(missing_docs)]
mod cancel;
mod capi;
mod config;
#[cfg(target_os = "linux")]
mod embedded;
mod engine;
mod environment;
mod error;
mod event;
mod executor;
mod fd;
mod feature;
mod forked;
mod live;
mod mark;
mod output;
mod process;
mod read;
mod request;
mod result;
mod sandbox;
mod signals;
mod spawn;
mod tree;
pub use cancel::CancelToken;
pub use config::{Config, Keep};
pub use error::{Error, ErrorKind, Result, Stage};
pub use event::{Event, EventKind};
pub use executor::{Executor, Stats};
pub use feature::Feature;
pub use process::{Process, ProcessInfo, Status, Stream};
pub use read::{Chunk, Reading};
pub use request::{Request, Spec, Survivors};
pub use result::{Captured, Exit, Outcome, RunResult, StopBy, StopStage, Survivor, Usage};
pub use sandbox::{
    sandbox_doctor, Backend, BackendReport, Denied, Doctor, Enforcement, Evidence, Mode, Network, Runner, SandboxFacts,
    SandboxPolicy,
};
pub use spawn::SpawnPath;
