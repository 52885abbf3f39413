//! The C ABI: a translation table between the types of this crate and those of `include/dsh.h`, one file per noun.
//!
//! Nothing is decided here. What the border itself needs (NULL, panics, struct sizes, text) is in five files:
//! - `border`: how a call comes in and how it ends;
//! - `handle`: what C knows by pointer only, and who owns it;
//! - `out`: parameters that are written to;
//! - `extensible`: structs that begin with their size;
//! - `text`: strings, bytes and lists of both.
//!
//! Ownership is in the signatures: `Option<&T>` is borrowed for the call, `Option<Box<T>>` is taken, `*mut *mut T` is
//! given. Comments on public items become the header, so they speak to a C programmer.
#![allow(non_camel_case_types)]

#[macro_use]
mod handle;
#[macro_use]
mod border;
#[macro_use]
mod extensible;

mod cancel;
mod config;
mod error;
mod event;
mod executor;
mod facts;
mod out;
mod outcome;
mod output;
mod process;
mod request;
mod result;
mod sandbox;
mod spec;
mod status;
mod text;
mod version;
