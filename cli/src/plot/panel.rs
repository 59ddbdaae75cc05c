//! One load: the requests above, the running count below.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figures::{self, BIN_NS, Bin};
use super::loads::END_NS;
use super::record::{Answered, Recorded};
use super::style::{ADMITTED, INK, LEAVES, LIMIT};

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
pub(crate) type Drawn = Result<(), Box<dyn std::error::Error>>;
type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// The most requests in a bar, plus a margin.
const REQUESTS: Range<f64> = 0.0..16.0;
/// Twice the limit, plus a margin.
const COUNTS: Range<f64> = 0.0..22.0;

const TITLE_HEIGHT: u32 = 24;
const BARS_HEIGHT: u32 = 140;

pub(crate) fn text(size: u32) -> TextStyle<'static> {
    // plotters takes a line height and writes a smaller font size.
    let size = f64::from(size) * 1.24;
    ("sans-serif", size).into_font().color(&INK.neutral)
}

/// Draws the answers to one load.
pub(crate) fn draw(area: &Area<'_>, recorded: &Recorded, answered: &Answered) -> Drawn {
    let (title, charts) = area.split_vertically(TITLE_HEIGHT);
    let (above, below) = charts.split_vertically(BARS_HEIGHT);
    let middle = text(14).pos(Pos::new(HPos::Center, VPos::Center));
    let (width, height) = title.dim_in_pixel();
    let at = (width as i32 / 2 + 12, height as i32 / 2);
    title.draw(&Text::new(answered.title, at, middle))?;
    requests(&above, answered)?;
    counts(&below, recorded, answered)
}

/// Draws bars of the requests, filled up to the number that was admitted. Marks later departures on
/// the axis.
fn requests(area: &Area<'_>, answered: &Answered) -> Drawn {
    let mut chart = axes(area, REQUESTS, 4, false)?;
    let bins = figures::bins(answered);
    let bars = (0..).zip(&bins).filter(|(_, bin)| bin.offered > 0);
    let bars = bars.flat_map(|(i, bin)| bar(i, bin));
    chart.draw_series(bars)?;
    if let Some(departures) = figures::departures(answered) {
        let dot = |&at: &u64| Circle::new((seconds(at), 0.0), 3, LEAVES.neutral.filled());
        chart.draw_series(departures.iter().filter(|&&at| at < END_NS).map(dot))?;
    }
    Ok(())
}

fn bar(i: u64, bin: &Bin) -> [Rectangle<(f64, f64)>; 2] {
    let gap = BIN_NS / 10;
    let (left, right) = (i * BIN_NS + gap, (i + 1) * BIN_NS - gap);
    let up_to = |count: u64, style: ShapeStyle| {
        let corners = [(seconds(left), 0.0), (seconds(right), count as f64)];
        Rectangle::new(corners, style)
    };
    [
        up_to(bin.admitted, ADMITTED.neutral.filled()),
        up_to(bin.offered, INK.neutral.stroke_width(1)),
    ]
}

/// Draws how many requests were admitted in the last period, how many left, and the limit.
fn counts(area: &Area<'_>, recorded: &Recorded, answered: &Answered) -> Drawn {
    let mut chart = axes(area, COUNTS, 3, true)?;
    let limit = recorded.limit as f64;
    let line = vec![(0.0, limit), (seconds(END_NS), limit)];
    chart.draw_series([PathElement::new(line, LIMIT.neutral.stroke_width(2))])?;
    let of = |moments: &[u64]| figures::running_count(moments, recorded.period_ns);
    if let Some(departures) = figures::departures(answered) {
        let line = steps(&of(&departures));
        chart.draw_series([PathElement::new(line, LEAVES.neutral.stroke_width(2))])?;
    }
    let line = steps(&of(&figures::admissions(answered)));
    chart.draw_series([PathElement::new(line, ADMITTED.neutral.stroke_width(2))])?;
    Ok(())
}

/// Turns counts into a line of horizontal and vertical steps.
fn steps(counts: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for &(at, count) in counts {
        line.extend(line.last().map(|last| (seconds(at), last.1)));
        line.push((seconds(at), count as f64));
    }
    line.extend(line.last().map(|last| (seconds(END_NS), last.1)));
    line
}

/// Draws seconds on the horizontal axis and a vertical axis with this range and number of labels.
fn axes<'a, 'b>(
    area: &'a Area<'b>,
    up: Range<f64>,
    labels: usize,
    is_lowest: bool,
) -> Result<Chart<'a, 'b>, Box<dyn std::error::Error>>
where
    'b: 'a,
{
    let mut chart = ChartBuilder::on(area)
        .margin_top(6)
        .margin_right(12)
        .y_label_area_size(28)
        .x_label_area_size(if is_lowest { 38 } else { 10 })
        .build_cartesian_2d(0.0..seconds(END_NS), up)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(5)
        .y_labels(labels)
        .max_light_lines(1)
        .light_line_style(TRANSPARENT)
        .bold_line_style(INK.neutral.mix(0.3))
        .axis_style(INK.neutral)
        .label_style(text(12))
        .axis_desc_style(text(12))
        .y_label_formatter(&|label| format!("{label:.0}"));
    if is_lowest {
        mesh.x_desc("seconds")
            .x_label_formatter(&|label| format!("{label:.0}"))
            .draw()?;
    } else {
        mesh.x_label_formatter(&|_| String::new()).draw()?;
    }
    Ok(chart)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
