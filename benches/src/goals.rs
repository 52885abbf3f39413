//! What the project wants to reach, as ratios within one run where that is possible.

use crate::measure::{Metric, Outcome};
use crate::peer::*;
use crate::plan::{size, thousands, Extent, Sizes, FEW_PIPES, KEPT, MANY_PIPES, MIB, SPILLED, TO_FILE, TO_NULL};
use crate::stats::Estimate;

type Key = (Way, &'static str);

/// What is compared with the limit.
enum Measure {
    /// The first divided by the second.
    Ratio(Key, Key),
    /// The first less the second, in milliseconds.
    Excess(Key, Key),
    /// The figure itself, in a unit of so many.
    Figure(Key, f64, &'static str),
}

enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

struct Goal {
    case: String,
    metric: Metric,
    what: String,
    measure: Measure,
    limit: Limit,
}

/// A row of the table of goals.
pub struct Verdict {
    pub what: String,
    pub goal: String,
    pub measured: String,
    pub met: bool,
}

/// Those of which everything was measured.
pub fn judge(outcomes: &[Outcome], extent: Extent) -> Vec<Verdict> {
    goals(extent).iter().filter_map(|goal| goal.judge(outcomes)).collect()
}

impl Goal {
    fn judge(&self, outcomes: &[Outcome]) -> Option<Verdict> {
        let outcome = outcomes.iter().find(|outcome| outcome.case.key == self.case)?;
        let values = |key: Key| outcome.line(key.0, key.1).map(|line| line.values(self.metric));
        let (estimate, unit) = match self.measure {
            Measure::Ratio(a, b) => (Estimate::of_pairs(&values(a)?, &values(b)?, |a, b| a / b)?, ""),
            Measure::Excess(a, b) => (Estimate::of_pairs(&values(a)?, &values(b)?, |a, b| (a - b) / 1e3)?, " ms"),
            Measure::Figure(key, unit, name) => {
                (Estimate::of_pairs(&values(key)?, &vec![unit; values(key)?.len()], |a, b| a / b)?, name)
            }
        };
        let (sign, limit, met) = match self.limit {
            Limit::AtMost(limit) => ("≤", limit, estimate.mid <= limit),
            Limit::AtLeast(limit) => ("≥", limit, estimate.mid >= limit),
        };
        Some(Verdict {
            what: self.what.clone(),
            goal: format!("{sign} {limit}{unit}"),
            measured: format!("{}{unit}", spread(estimate)),
            met,
        })
    }
}

/// The median, and from where to where the rounds went.
pub fn spread(estimate: Estimate) -> String {
    format!("{} ({}–{})", digits(estimate.mid), digits(estimate.low), digits(estimate.high))
}

/// Three digits that mean something; near one, where most goals are, all of the hundredths.
pub fn digits(value: f64) -> String {
    match value.abs() {
        a if a < 0.095 => format!("{value:.3}"),
        a if a < 9.95 => format!("{value:.2}"),
        a if a < 99.5 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn goals(extent: Extent) -> Vec<Goal> {
    use Limit::{AtLeast, AtMost};
    use Measure::{Excess, Figure, Ratio};
    let sizes = Sizes::of(extent);
    let mut goals = Vec::new();
    let mut goal = |case: &str, metric, what: String, measure, limit| {
        goals.push(Goal { case: case.to_owned(), metric, what, measure, limit });
    };
    let (floor, dsh, reference) = ((FLOOR, ""), (C_DSH, ""), (REFERENCE, ""));
    let spilled = (C_DSH, SPILLED);
    let spilled_by_reference = (REFERENCE, SPILLED);

    // The sizes between are for the curve.
    for &mib in sizes.ballasts.iter().filter(|&&mib| extent == Extent::Quick || ![50, 800].contains(&mib)) {
        let case = format!("latency-{mib}");
        let host = size(u64::from(mib.max(10)) * MIB);
        let what = |text: &str| format!("`true` in a host of {host}: {text}");
        goal(&case, Metric::Wall, what("libdsh ÷ bare posix_spawn"), Ratio(dsh, floor), AtMost(1.03));
        let times = if mib == 2048 { 30.0 } else { 2.0 };
        goal(&case, Metric::Wall, what("harness executor ÷ libdsh"), Ratio(reference, dsh), AtLeast(times));
    }
    let case = "latency-0";
    let what = |text: &str| format!("`true`: {text}");
    goal(case, Metric::Cpu, what("CPU time of the host"), Figure(dsh, 1.0, " µs"), AtMost(75.0));
    for (way, limit) in [(NODE_DSH, 1.14), (PYTHON_DSH, 1.08), (GO_DSH, 1.08)] {
        goal(case, Metric::Wall, what(&format!("{} ÷ C", way.title)), Ratio((way, ""), dsh), AtMost(limit));
    }
    let node = (NODE_DSH, "");
    goal(case, Metric::Wall, what("harness executor ÷ Node, libdsh"), Ratio(reference, node), AtLeast(1.75));
    let text = "CPU time of Node, libdsh ÷ harness executor";
    goal(case, Metric::Cpu, what(text), Ratio(node, reference), AtMost(0.125));
    for (other, ours) in [(CHILD_PROCESS, NODE_DSH), (EXECA, NODE_DSH), (SUBPROCESS, PYTHON_DSH), (OS_EXEC, GO_DSH)] {
        let what = what(&format!("{} ÷ {}", other.title, ours.title));
        goal(case, Metric::Wall, what, Ratio((other, ""), (ours, "")), AtLeast(1.0));
    }

    for (callers, limit) in [(2, 0.97), (8, 0.95)] {
        let what = format!("runs per second of {callers} callers: libdsh ÷ bare posix_spawn");
        goal(&format!("parallel-{callers}"), Metric::Rate, what, Ratio(dsh, floor), AtLeast(limit));
    }

    let case = "bulk-zeros";
    let what = |text: &str| format!("{} of zeros, the first 64 MiB spilled: {text}", size(sizes.zeros));
    goal(case, Metric::Wall, what("harness executor ÷ libdsh"), Ratio(spilled_by_reference, spilled), AtLeast(1.6));
    let text = "CPU time of libdsh ÷ harness executor";
    goal(case, Metric::Cpu, what(text), Ratio(spilled, spilled_by_reference), AtMost(0.25));
    let text = "libdsh ÷ bare splice, nothing kept";
    goal(case, Metric::Wall, what(text), Ratio(spilled, (SPLICE, KEPT)), AtMost(1.05));
    let text = "libdsh ÷ bare reads from 1 MiB pipes";
    goal(case, Metric::Wall, what(text), Ratio(spilled, (READER_1M, KEPT)), AtMost(0.8));
    let text = format!("{} by `dd bs=1M`: harness executor ÷ libdsh", size(sizes.zeros));
    goal("bulk-dd", Metric::Wall, text, Ratio(spilled_by_reference, spilled), AtLeast(1.25));
    let what = |text: &str| format!("64 MiB of zeros, all of it spilled: {text}");
    let case = "bulk-file";
    goal(case, Metric::Wall, what("harness executor ÷ libdsh"), Ratio(spilled_by_reference, spilled), AtLeast(2.7));
    let text = "libdsh ÷ the command writing the file itself";
    goal(case, Metric::Wall, what(text), Ratio(spilled, (FLOOR, TO_FILE)), AtMost(0.75));

    for (case, text, limit) in [
        ("lines-stdbuf", format!("{} lines, line buffered", thousands(sizes.lines)), 1.5),
        ("lines-echo", format!("{} times `echo`", thousands(sizes.echoes)), 1.05),
        ("lines-seq", format!("`seq {}`", sizes.seq), 1.4),
    ] {
        let what = format!("{text}: libdsh ÷ into /dev/null");
        goal(case, Metric::Wall, what, Ratio(spilled, (FLOOR, TO_NULL)), AtMost(limit));
        let what = format!("{text}: CPU time of libdsh ÷ harness executor");
        goal(case, Metric::Cpu, what, Ratio(spilled, spilled_by_reference), AtMost(0.05));
    }

    let what = "first output of a background process, to the reading host".to_owned();
    goal("first_byte-0", Metric::Wall, what, Figure(dsh, 1.0, " µs"), AtMost(300.0));
    let what = "SIGTERM to the known end of a background process: libdsh ÷ bare posix_spawn".to_owned();
    goal("kill", Metric::Wall, what, Ratio(dsh, floor), AtMost(3.0));

    let case = format!("many-{}", sizes.many_goal);
    let what = |text: &str| format!("{} background processes: {text}", thousands(sizes.many_goal.into()));
    goal(&case, Metric::Ready, what("until ready, libdsh ÷ bare posix_spawn"), Ratio(dsh, floor), AtMost(1.05));
    goal(&case, Metric::Kill, what("until all are ended, libdsh ÷ bare posix_spawn"), Ratio(dsh, floor), AtMost(1.2));
    goal(&case, Metric::Rss, what("memory of the host for each"), Figure(dsh, 1.0, " KiB"), AtMost(2.0));
    goal(&case, Metric::Threads, what("threads of libdsh, with that of the host"), Figure(dsh, 1.0, ""), AtMost(3.0));
    goal(&case, Metric::Idle, what("CPU time of the host in an idle second"), Figure(dsh, 1e3, " ms"), AtMost(0.1));

    let text = format!("a line of output: cost with {} pipes watched ÷ with 8", thousands(sizes.pipes[1].into()));
    goal("wakeup", Metric::Cpu, text, Ratio((C_DSH, MANY_PIPES), (C_DSH, FEW_PIPES)), AtMost(1.2));
    let text = "a process that runs one `true`: with libdsh, less with bare posix_spawn".to_owned();
    goal("load", Metric::Wall, text, Excess(dsh, floor), AtMost(3.0));
    goals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    #[test]
    fn every_goal_has_a_case_that_measures_it() {
        for extent in [Extent::Quick, Extent::Full] {
            let cases = plan::cases(extent);
            for goal in goals(extent) {
                let case = cases.iter().find(|case| case.key == goal.case).unwrap_or_else(|| panic!("{}", goal.what));
                let keys = match goal.measure {
                    Measure::Ratio(a, b) | Measure::Excess(a, b) => vec![a, b],
                    Measure::Figure(a, ..) => vec![a],
                };
                for key in keys {
                    let measured = case.entries.iter().any(|entry| (entry.way, entry.note) == key);
                    // In a hurry only the curves' ways are measured with large hosts and many callers.
                    assert!(measured, "{}: {} {}", goal.what, key.0.title, key.1);
                }
            }
        }
    }

    #[test]
    fn figures_are_as_long_as_they_mean_something() {
        assert_eq!(
            ["0.013", "1.03", "30.5", "214"],
            [0.0131, 1.0304, 30.49, 214.4].map(digits).each_ref().map(String::as_str)
        );
    }
}
