//! What was measured, as Markdown and as curves.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::goals::{self, digits, spread, Verdict};
use crate::measure::{Conductor, Line, Metric, Outcome};
use crate::peer::{Way, WAYS};
use crate::plan::{size, thousands, Extent, Sizes, CURVES, KEPT, MIB};
use crate::plot::{self, Plot, Unit};
use crate::stats::Estimate;

pub struct Report<'a> {
    pub extent: Extent,
    pub seed: u64,
    pub machine: Vec<(&'static str, String)>,
    pub outcomes: &'a [Outcome],
    pub conductor: &'a Conductor,
    /// Ways whose program isn't there, and what would bring it.
    pub missing: Vec<String>,
}

/// The headings of the works, in their order.
const GROUPS: [(&str, &str); 8] = [
    ("latency", "One command"),
    ("bulk", "Large outputs"),
    ("lines", "Many lines"),
    ("parallel", "Several callers"),
    ("many", "Many background processes"),
    ("kill", "Ending a process"),
    ("first_byte", "Hearing of output"),
    ("wakeup", "Watching many pipes"),
];

impl Report<'_> {
    /// Writes README.md and the curves.
    pub fn write(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        fs::create_dir_all(folder)?;
        let mut text = String::from(
            "# What commands cost\n\nWritten by `make bench`. What each work is and how it is measured is in \
             [benches/README.md](../../benches/README.md).\n\n",
        );
        text +=
            "Figures are medians, and in parentheses the lowest and highest round. Ratios are formed round by round, \
                 within which all took their turns, so that they mean something on a machine whose speed changes. Ours \
                 is **bold**.\n\n";
        self.machine.iter().for_each(|(name, value)| text += &format!("- {name}: {value}\n"));
        text += "\n## Goals\n\n";
        text += &self.goals();
        text += "\n## How it grows\n";
        for curve in curves(self.extent) {
            let plot = curve.plot(self.outcomes);
            if plot.ticks.len() < 2 {
                continue;
            }
            fs::write(folder.join(curve.file), plot::draw(&plot)?)?;
            write!(text, "\n![{}]({})\n\n", curve.title, curve.file)?;
            write!(text, "<details><summary>The figures</summary>\n\n{}\n</details>\n", curve.figures(&plot))?;
        }
        for (group, heading) in GROUPS {
            self.write_group(&mut text, group, heading)?;
        }
        self.write_group(&mut text, "load", "Loading the library")?;
        text += "\n## Peers\n\n";
        let version = |way: &Way| Some(format!("- {}: {}\n", name(*way, ""), self.conductor.versions.get(way)?));
        text.extend(WAYS.iter().filter_map(version));
        if !self.missing.is_empty() || !self.conductor.notes.is_empty() {
            text += "\nLeft out:\n\n";
            self.missing.iter().chain(&self.conductor.notes).for_each(|note| text += &format!("- {note}\n"));
        }
        write!(
            text,
            "\n{} slices, shuffled with seed {}; {} of them were repeated because the machine was busy with other things, \
             and {} were used although it was.\n",
            thousands(self.conductor.slices.into()),
            self.seed,
            self.conductor.repeated,
            self.conductor.disturbed
        )?;
        fs::write(folder.join("README.md"), text)?;
        Ok(())
    }

    pub fn goals(&self) -> String {
        let verdicts = goals::judge(self.outcomes, self.extent);
        let row = |verdict: &Verdict| {
            let met = if verdict.met { "met" } else { "**not met**" };
            vec![verdict.what.clone(), verdict.goal.clone(), verdict.measured.clone(), met.to_owned()]
        };
        let mut text = table(&["", "goal", "measured", ""], &verdicts.iter().map(row).collect::<Vec<_>>());
        let met = verdicts.iter().filter(|verdict| verdict.met).count();
        text += &format!("\n{met} of {} goals are met.", verdicts.len());
        if self.extent == Extent::Quick {
            text += " They are meant for the sizes of the full run; these were smaller.";
        }
        text + "\n"
    }

    fn write_group(&self, text: &mut String, group: &str, heading: &str) -> Result<(), std::fmt::Error> {
        let mut outcomes =
            self.outcomes.iter().filter(|o| o.case.table && o.case.group() == group && !o.lines.is_empty());
        let Some(first) = outcomes.next() else { return Ok(()) };
        write!(text, "\n## {heading}\n")?;
        let mut about = "";
        for outcome in std::iter::once(first).chain(outcomes) {
            write!(text, "\n### {}\n\n", outcome.case.title)?;
            if outcome.case.about != about {
                about = outcome.case.about;
                write!(text, "{about}\n\n")?;
            }
            text.push_str(&lines(outcome));
        }
        Ok(())
    }
}

fn name(way: Way, note: &str) -> String {
    let comma = if note.is_empty() { "" } else { ", " };
    let bold = if way.is_ours() { "**" } else { "" };
    format!("{bold}{}{comma}{note}{bold}", way.title)
}

/// The table of one work: its main figure with the spread, that against the baseline, and whatever else was measured.
fn lines(outcome: &Outcome) -> String {
    let metrics: Vec<Metric> = outcome
        .lines
        .first()
        .map_or(Vec::new(), |line| line.slices.first().map_or(Vec::new(), |slice| slice.keys().copied().collect()));
    let (way, note) = outcome.case.baseline;
    let baseline = outcome.line(way, note);
    let against = format!("÷ {}", name(way, note).replace("**", ""));
    let mut head = vec!["way".to_owned()];
    for (i, metric) in metrics.iter().enumerate() {
        head.push(metric.title().to_owned());
        if i == 0 {
            head.push(against.clone());
        }
    }
    let row = |line: &Line| {
        let mut row = vec![name(line.entry.way, line.entry.note)];
        for (i, &metric) in metrics.iter().enumerate() {
            let estimate = line.estimate(metric);
            row.push(estimate.map_or(String::new(), |estimate| metric.text(estimate, i == 0)));
            if i == 0 {
                let values = baseline.map_or(Vec::new(), |baseline| baseline.values(metric));
                let ratio = Estimate::of_pairs(&line.values(metric), &values, |a, b| a / b);
                row.push(ratio.map_or(String::new(), spread));
            }
        }
        row
    };
    let mut sorted: Vec<&Line> = outcome.lines.iter().collect();
    // By language; and of one way in the order of the plan.
    sorted.sort_by_key(|line| WAYS.iter().position(|&way| way == line.entry.way));
    table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &sorted.into_iter().map(row).collect::<Vec<_>>())
}

impl Metric {
    fn title(self) -> &'static str {
        match self {
            Metric::Wall => "time",
            Metric::Rate => "runs per second",
            Metric::Ready => "until ready",
            Metric::Kill => "until ended",
            Metric::Cpu => "host CPU each",
            Metric::StartCpu => "host CPU, each start",
            Metric::KillCpu => "host CPU, each end",
            Metric::Idle => "host CPU, idle second",
            Metric::Rss => "host memory each",
            Metric::Threads => "threads",
            Metric::Fds => "descriptors",
        }
    }

    fn text(self, estimate: Estimate, with_spread: bool) -> String {
        let (by, unit) = match self {
            Metric::Rate | Metric::Threads | Metric::Fds => {
                return match with_spread {
                    true => format!("{:.0} ({:.0}–{:.0})", estimate.mid, estimate.low, estimate.high),
                    false => format!("{:.0}", estimate.mid),
                }
            }
            Metric::Rss => (1.0, "KiB"),
            _ => match estimate.mid {
                mid if mid < 999.5 => (1.0, "µs"),
                mid if mid < 999.5e3 => (1e3, "ms"),
                _ => (1e6, "s"),
            },
        };
        let Estimate { mid, low, high } = estimate;
        match with_spread {
            true => format!("{} {unit} ({}–{})", digits(mid / by), digits(low / by), digits(high / by)),
            false => format!("{} {unit}", digits(mid / by)),
        }
    }
}

/// What a curve shows, and of which cases.
#[derive(Clone, Copy)]
struct Curve {
    file: &'static str,
    title: &'static str,
    y_title: &'static str,
    x_title: &'static str,
    group: &'static str,
    note: &'static str,
    metric: Metric,
    unit: Unit,
    is_log: bool,
    /// The largest size has a work of its own.
    also: Option<(&'static str, f64)>,
    tick: fn(f64) -> (f64, String),
}

fn curves(extent: Extent) -> Vec<Curve> {
    let count = |x: f64| (x, thousands(x as u64));
    let time = Curve {
        file: "host-memory.svg",
        title: "A command in a host that has much memory",
        y_title: "time of one run of true",
        x_title: "memory of the host",
        group: "latency",
        note: "",
        metric: Metric::Wall,
        unit: Unit::Microseconds,
        is_log: true,
        also: None,
        // A host without ballast is one of some 10 MiB.
        tick: |x| (x.max(10.0), size(x.max(10.0) as u64 * MIB)),
    };
    vec![
        time,
        Curve {
            file: "output-size.svg",
            title: "A command that writes much",
            y_title: "time of one run of head -c SIZE /dev/zero",
            x_title: "size of the output",
            group: "output",
            note: KEPT,
            also: Some(("bulk-zeros", Sizes::of(extent).zeros as f64)),
            tick: |x| (x, size(x as u64)),
            ..time
        },
        Curve {
            file: "callers.svg",
            title: "Several callers at a time",
            y_title: "runs of true per second, of all callers",
            x_title: "callers",
            group: "parallel",
            metric: Metric::Rate,
            unit: Unit::Plain,
            is_log: false,
            tick: count,
            ..time
        },
        Curve {
            file: "processes-ready.svg",
            title: "Starting many background processes",
            y_title: "time until all of them are ready",
            x_title: "processes",
            group: "many",
            metric: Metric::Ready,
            tick: count,
            ..time
        },
        Curve {
            file: "processes-memory.svg",
            title: "Memory for many background processes",
            y_title: "what the host grows by for each of them",
            x_title: "processes",
            group: "many",
            metric: Metric::Rss,
            unit: Unit::Kibibytes,
            tick: count,
            ..time
        },
    ]
}

impl Curve {
    fn plot(&self, outcomes: &[Outcome]) -> Plot {
        let mut points: Vec<(f64, &Outcome)> = outcomes
            .iter()
            .filter_map(|outcome| match self.also {
                Some((key, x)) if key == outcome.case.key => Some((x, outcome)),
                _ => Some((outcome.case.key.strip_prefix(self.group)?.strip_prefix('-')?.parse().ok()?, outcome)),
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let series = CURVES.iter().map(|&way| {
            let point = |&(x, outcome): &(f64, &Outcome)| {
                let y = outcome.line(way, self.note)?.estimate(self.metric)?.mid;
                // Nothing can't be shown on a logarithmic axis.
                (y > 0.0).then(|| ((self.tick)(x).0, y))
            };
            (way, points.iter().filter_map(point).collect())
        });
        Plot {
            title: self.title.to_owned(),
            y_title: self.y_title,
            x_title: self.x_title,
            y_unit: self.unit,
            y_is_log: self.is_log,
            ticks: points.iter().map(|&(x, _)| (self.tick)(x)).collect(),
            series: series.filter(|(_, points): &(Way, Vec<(f64, f64)>)| !points.is_empty()).collect(),
        }
    }

    fn figures(&self, plot: &Plot) -> String {
        let mut head = vec![self.x_title];
        head.extend(plot.ticks.iter().map(|tick| tick.1.as_str()));
        let row = |(way, points): &(Way, Vec<(f64, f64)>)| {
            let figure = |tick: &(f64, String)| {
                let point = points.iter().find(|point| point.0 == tick.0);
                point.map_or(String::new(), |&(_, y)| self.metric.text(Estimate { mid: y, low: y, high: y }, false))
            };
            std::iter::once(name(*way, "")).chain(plot.ticks.iter().map(figure)).collect()
        };
        table(&head, &plot.series.iter().map(row).collect::<Vec<_>>())
    }
}

/// A table whose columns are as wide as what is in them: it is read as text too.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let length = |text: &str| text.chars().count();
    let width = |i: usize| rows.iter().map(|row| length(&row[i])).max().unwrap_or(0).max(length(head[i])).max(2);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        for (i, cell) in cells.iter().enumerate() {
            let space = " ".repeat(widths[i] - length(cell));
            // Words to the left, figures to the right.
            let _ = if i == 0 { write!(text, "| {cell}{space} ") } else { write!(text, "| {space}{cell} ") };
        }
        text.push_str("|\n");
    };
    line(&head.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>());
    let rule = |i: usize| if i == 0 { "-".repeat(widths[i]) } else { "-".repeat(widths[i] - 1) + ":" };
    line(&(0..head.len()).map(rule).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let text = table(&["way", "time"], &[vec!["one".into(), "1 µs".into()], vec!["eleven".into(), "11 ms".into()]]);
        assert_eq!(text, "| way    |  time |\n| ------ | ----: |\n| one    |  1 µs |\n| eleven | 11 ms |\n");
    }

    #[test]
    fn figures_have_the_unit_that_suits_them() {
        let estimate = Estimate { mid: 2310.0, low: 2200.0, high: 2450.0 };
        assert_eq!(Metric::Wall.text(estimate, true), "2.31 ms (2.20–2.45)");
        assert_eq!(Metric::Rss.text(Estimate { mid: 1.5, low: 1.5, high: 1.5 }, false), "1.50 KiB");
    }
}
