//! The Rust peers: the standard library, duct, tokio, and ourselves through the Rust API. The protocol is in
//! benches/README.md.

mod by_dsh;
mod by_duct;
mod by_std;
mod by_tokio;
mod groups;
mod host;
mod output;
mod threads;
mod way;
mod works;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use way::{Mode, Way};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (variant, ballast_mib) = match arguments[..] {
        [variant] => (variant, 0),
        [variant, "--ballast", mib] => (variant, mib.parse().unwrap_or(0)),
        _ => return usage(),
    };
    // The host is that big before it does anything else.
    let _ballast = host::ballast(ballast_mib);
    match way(variant) {
        Some(Ok(way)) => match serve(way.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error.to_string()),
        },
        Some(Err(error)) => failed(&error),
        None => usage(),
    }
}

fn way(variant: &str) -> Option<Result<Box<dyn Way>, String>> {
    Some(match variant {
        "std" => Ok(Box::new(by_std::Std)),
        "duct" => Ok(Box::new(by_duct::Duct)),
        "tokio" => by_tokio::Tokio::new().map(|way| Box::new(way) as Box<dyn Way>),
        "dsh" => by_dsh::Dsh::new().map(|way| Box::new(way) as Box<dyn Way>),
        _ => return None,
    })
}

fn usage() -> ExitCode {
    eprintln!("usage: peer-rust VARIANT [--ballast MIB], VARIANT one of: std duct tokio dsh");
    ExitCode::from(2)
}

fn failed(why: &str) -> ExitCode {
    eprintln!("peer-rust: {why}");
    ExitCode::FAILURE
}

fn serve(way: &dyn Way) -> io::Result<()> {
    groups::end_when_interrupted();
    way.run(Mode::Keep, "true").map_err(io::Error::other)?; // so that it is warm
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "ready\tversion={}", way.version())?;
    stdout.flush()?;
    for line in io::stdin().lock().lines() {
        match works::answer(way, &line?) {
            Ok(Some(answer)) => writeln!(stdout, "{answer}")?,
            Ok(None) => writeln!(stdout, "unsupported")?,
            Err(error) => writeln!(stdout, "error\t{}", error.replace(['\n', '\t'], " "))?,
        }
        stdout.flush()?;
    }
    Ok(())
}
