//! Growth curves as SVG: a line for each way of running commands, with its name where it ends.

use std::error::Error;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::peer::{self, Way};

/// What the numbers of an axis are.
#[derive(Clone, Copy)]
pub enum Unit {
    Microseconds,
    Kibibytes,
    Plain,
}

pub struct Plot {
    pub title: String,
    /// What goes up, in words.
    pub y_title: &'static str,
    pub x_title: &'static str,
    pub y_unit: Unit,
    /// Else from zero.
    pub y_is_log: bool,
    /// Where there are points, and what that is called.
    pub ticks: Vec<(f64, String)>,
    pub series: Vec<(Way, Vec<(f64, f64)>)>,
}

const WIDTH: u32 = 860;
const HEIGHT: u32 = 480;
const TEXT: RGBColor = RGBColor(0x33, 0x39, 0x40);
const GRID: RGBColor = RGBColor(0xe4, 0xe7, 0xeb);
const OURS: RGBColor = RGBColor(0x0a, 0x58, 0xe8);
/// Between the names at the ends of lines.
const NAME_HEIGHT: i32 = 19;

/// Muted, and each told from its neighbours.
fn color(way: Way) -> RGBColor {
    match way {
        _ if way.is_ours() => OURS,
        peer::FLOOR => RGBColor(0x45, 0x4d, 0x57),
        peer::LIBUV => RGBColor(0x9a, 0x86, 0xb8),
        peer::TOKIO => RGBColor(0xb9, 0x84, 0x5c),
        peer::CHILD_PROCESS => RGBColor(0x76, 0xa3, 0x7a),
        peer::REFERENCE => RGBColor(0xc9, 0x7f, 0x8f),
        peer::SUBPROCESS => RGBColor(0xb3, 0xa0, 0x4d),
        peer::OS_EXEC => RGBColor(0x66, 0xa3, 0xb3),
        _ => RGBColor(0x96, 0x9d, 0xa6),
    }
}

pub fn draw(plot: &Plot) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE)?;
        let bold = ("sans-serif", 20).into_font().style(FontStyle::Bold).color(&TEXT);
        root.draw(&Text::new(plot.title.clone(), (22, 18), bold))?;
        root.draw(&Text::new(plot.y_title, (22, 48), ("sans-serif", 15).into_font().color(&TEXT)))?;

        // The axes are straight ones of logarithms, so that one kind of chart does for all.
        let y_of = |y: f64| if plot.y_is_log { y.log10() } else { y };
        let values = || plot.series.iter().flat_map(|(_, points)| points.iter().map(|point| point.1));
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let low = if plot.y_is_log { values().fold(f64::INFINITY, f64::min) } else { 0.0 };
        let (low, high) = (y_of(low * 0.85), y_of(high * 1.15));
        let x_ticks: Vec<f64> = plot.ticks.iter().map(|tick| tick.0.log10()).collect();
        let (first, last) = (x_ticks[0], x_ticks[x_ticks.len() - 1]);
        let edge = (last - first).max(0.1) * 0.03;

        let mut chart = ChartBuilder::on(&root)
            .margin_top(80)
            .margin_right(195)
            .margin_bottom(70)
            .margin_left(84)
            .build_cartesian_2d(first - edge..last, low..high)?;

        // The library's own axes put their numbers where they like; here they belong to what was measured.
        let label = |at| ("sans-serif", 14).into_font().color(&TEXT).pos(at);
        let line = |from, to| PathElement::new(vec![from, to], GRID);
        let (left, bottom) = chart.backend_coord(&(first - edge, low));
        let (right, top) = chart.backend_coord(&(last, high));
        for y in y_ticks(low, high, plot.y_is_log) {
            let text = plot.y_unit.text(if plot.y_is_log { 10_f64.powf(y) } else { y });
            let y = chart.backend_coord(&(first, y)).1;
            root.draw(&line((left, y), (right, y)))?;
            root.draw(&Text::new(text, (left - 8, y), label(Pos::new(HPos::Right, VPos::Center))))?;
        }
        let centered = Pos::new(HPos::Center, VPos::Top);
        for (tick, (_, text)) in x_ticks.iter().zip(&plot.ticks) {
            let x = chart.backend_coord(&(*tick, low)).0;
            root.draw(&line((x, top), (x, bottom + 5)))?;
            root.draw(&Text::new(text.clone(), (x, bottom + 11), label(centered)))?;
        }
        root.draw(&line((left, bottom), (right, bottom)))?;
        root.draw(&Text::new(plot.x_title, ((left + right) / 2, bottom + 38), label(centered)))?;

        // Ours last, on top of the others.
        let mut order: Vec<&(Way, Vec<(f64, f64)>)> =
            plot.series.iter().filter(|series| !series.1.is_empty()).collect();
        order.sort_by_key(|(way, _)| way.is_ours());
        let mut ends = Vec::new();
        for (way, points) in order {
            let (color, width) = (color(*way), if way.is_ours() { 4 } else { 2 });
            let points: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.log10(), y_of(y))).collect();
            chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(width)))?;
            chart.draw_series(points.iter().map(|&point| Circle::new(point, width + 1, color.filled())))?;
            let end = points[points.len() - 1];
            ends.push((chart.backend_coord(&end), *way, color));
        }

        ends.sort_by_key(|((_, y), ..)| *y);
        let wanted: Vec<i32> = ends.iter().map(|((_, y), ..)| *y).collect();
        for (((x, y), way, color), at) in ends.iter().zip(apart(&wanted, NAME_HEIGHT, HEIGHT as i32 - 70)) {
            // A line that ends early has its name at the right all the same, and a thin line that leads there.
            root.draw(&PathElement::new(vec![(x + 6, *y), (right + 10, *y), (right + 22, at)], color.mix(0.45)))?;
            let weight = if way.is_ours() { FontStyle::Bold } else { FontStyle::Normal };
            let style =
                ("sans-serif", 14).into_font().style(weight).color(color).pos(Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(way.title, (right + 27, at), style))?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// Moves positions, given from the top down, as far apart as names need, and no lower than `bottom`.
fn apart(wanted: &[i32], gap: i32, bottom: i32) -> Vec<i32> {
    let mut placed = wanted.to_vec();
    // Each overlap is shared by both sides, so that a bunch of names spreads around its middle.
    for _ in 0..200 {
        for i in 1..placed.len() {
            let missing = gap - (placed[i] - placed[i - 1]);
            if missing > 0 {
                placed[i - 1] -= missing / 2;
                placed[i] += missing - missing / 2;
            }
        }
    }
    for i in (0..placed.len()).rev() {
        let below = placed.get(i + 1).map_or(bottom, |next| next - gap);
        placed[i] = placed[i].min(below);
    }
    placed
}

/// Round numbers between two ends; of a logarithmic axis the ends are logarithms, and so are the numbers.
fn y_ticks(low: f64, high: f64, is_log: bool) -> Vec<f64> {
    if is_log {
        let steps: &[f64] = match high - low {
            span if span < 2.0 => &[1.0, 2.0, 5.0],
            span if span < 3.2 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let decades = low.floor() as i32..=high.ceil() as i32;
        let all = decades.flat_map(|decade| steps.iter().map(move |step| step.log10() + f64::from(decade)));
        return all.filter(|&tick| tick >= low && tick <= high).collect();
    }
    let rough = (high - low) / 6.0;
    let decade = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * decade).find(|&step| step >= rough).unwrap_or(rough);
    (0..).map(|i| low + f64::from(i) * step).take_while(|&tick| tick <= high).collect()
}

impl Unit {
    fn text(self, value: f64) -> String {
        let (value, unit) = match self {
            Unit::Microseconds if value < 999.5 => (value, " µs"),
            Unit::Microseconds if value < 999.5e3 => (value / 1e3, " ms"),
            Unit::Microseconds => (value / 1e6, " s"),
            Unit::Kibibytes => (value, " KiB"),
            Unit::Plain => (value, ""),
        };
        // What rounding left of a power of ten is not shown.
        let rounded = (value * 1e3).round() / 1e3;
        format!("{rounded}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_moved_apart_and_stay_in_order() {
        assert_eq!(apart(&[10, 100], 18, 400), [10, 100]);
        let placed = apart(&[390, 391, 392, 393], 18, 400);
        assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= 18), "{placed:?}");
        assert!(placed[3] <= 400);
    }

    #[test]
    fn ticks_are_round_numbers() {
        let ticks: Vec<String> = y_ticks(500_f64.log10(), 25_000_f64.log10(), true)
            .iter()
            .map(|y| Unit::Microseconds.text(10_f64.powf(*y)))
            .collect();
        assert_eq!(ticks, ["500 µs", "1 ms", "2 ms", "5 ms", "10 ms", "20 ms"]);
        assert_eq!(y_ticks(0.0, 1150.0, false), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
    }
}
