//! The conductor of the benchmark suite: starts the peers, has them work in turn, and writes the report. See
//! benches/README.md; `make bench` is the way to run it.

mod goals;
mod machine;
mod measure;
mod peer;
mod plan;
mod plot;
mod protocol;
mod report;
mod smoke;
mod stats;

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::measure::{Conductor, Outcome};
use crate::peer::{Way, WAYS};
use crate::plan::Extent;
use crate::report::Report;

const USAGE: &str = "usage: bench OUT [--quick | --smoke] [--only WORD] [--seed NUMBER]";

struct Arguments {
    /// Where the peers are.
    out: PathBuf,
    extent: Extent,
    smoke: bool,
    only: String,
    seed: u64,
}

fn arguments() -> Option<Arguments> {
    let mut arguments = std::env::args().skip(1);
    let out = PathBuf::from(arguments.next()?);
    let mut parsed = Arguments { out, extent: Extent::Full, smoke: false, only: String::new(), seed: 1 };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => parsed.extent = Extent::Quick,
            "--smoke" => parsed.smoke = true,
            "--only" => parsed.only = arguments.next()?,
            "--seed" => parsed.seed = arguments.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some(parsed)
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (here, missing): (Vec<Way>, Vec<Way>) = WAYS.iter().partition(|way| way.program(&arguments.out).exists());
    if arguments.smoke {
        return if smoke::run(&arguments.out, &here) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match bench(&arguments, &missing) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &Arguments, missing: &[Way]) -> Result<(), Box<dyn Error>> {
    // The peers spill where the bare shell writes its file, or the two couldn't be compared.
    std::env::set_var("TMPDIR", std::env::temp_dir());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let patience = Duration::from_secs(if arguments.extent == Extent::Full { 120 } else { 15 });
    let mut conductor = Conductor::new(&arguments.out, arguments.seed, patience);
    eprintln!("the order of the slices has seed {}", arguments.seed);

    let mut outcomes = Vec::new();
    for case in plan::cases(arguments.extent).into_iter().filter(|case| case.key.contains(&arguments.only)) {
        let begin = Instant::now();
        eprint!("{} … ", case.title);
        let outcome = conductor.run(case);
        eprintln!("{:.1} s", begin.elapsed().as_secs_f64());
        outcomes.push(outcome);
    }
    if outcomes.is_empty() {
        return Err(format!("no work is called {:?}", arguments.only).into());
    }

    // Only all of it is worth keeping in the repository.
    let whole = arguments.extent == Extent::Full && arguments.only.is_empty();
    let folder = if whole { root.join("docs/benchmarks") } else { arguments.out.join("report") };
    let report = Report {
        extent: arguments.extent,
        seed: arguments.seed,
        machine: machine::describe(&root),
        outcomes: &outcomes,
        conductor: &conductor,
        missing: left_out(&arguments.out, missing),
    };
    report.write(&folder)?;
    fs::write(arguments.out.join("slices.tsv"), slices(&outcomes)?)?;
    println!("{}", report.goals());
    println!("The whole report: {}", folder.canonicalize()?.join("README.md").display());
    Ok(())
}

/// What is not there, with the reason that its build gave.
fn left_out(out: &Path, missing: &[Way]) -> Vec<String> {
    let line = |way: &Way| match fs::read_to_string(out.join("missing").join(way.language)) {
        Ok(reason) => format!("{}: {}", way.title, reason.trim()),
        Err(_) => way.title.to_owned(),
    };
    missing.iter().map(line).collect()
}

/// Every figure of every slice, for whoever wants to look closer.
fn slices(outcomes: &[Outcome]) -> Result<String, std::fmt::Error> {
    let mut text = String::from("case\tlanguage\tvariant\tnote\tround\tmetric\tvalue\n");
    for (outcome, line) in outcomes.iter().flat_map(|outcome| outcome.lines.iter().map(move |line| (outcome, line))) {
        let (key, way, note) = (&outcome.case.key, line.entry.way, line.entry.note);
        for (round, slice) in line.slices.iter().enumerate() {
            for (metric, value) in slice {
                writeln!(text, "{key}\t{}\t{}\t{note}\t{round}\t{metric:?}\t{value}", way.language, way.variant)?;
            }
        }
    }
    Ok(text)
}
