//! How long single decisions take.

use std::error::Error;
use std::fmt::Write;

use super::figure::{Figure, Line, Panel};
use super::html::table;
use super::style::Look;
use super::{Findings, PANELS, STARRED};
use crate::bench::contestants::Source;
use crate::bench::contestants::timing::Kind;
use crate::bench::latency::{Latency, PERCENTILES};
use crate::bench::machine::step_ns;
use crate::bench::rows::short;

/// A picture and a table for each number of threads and kind of decision.
pub(crate) fn write(html: &mut String, findings: &Findings<'_>) -> Result<(), Box<dyn Error>> {
    html.push_str("<h2>Latency of single decisions</h2>\n");
    html.push_str(&overhead(findings.latencies));
    let places = PERCENTILES.map(|(name, _)| name.to_owned());
    for &n in findings.threads {
        for kind in Kind::BOTH {
            let is_wanted =
                |one: &&Latency<'_>| (one.contest.threads, one.contest.entry.kind) == (n, kind);
            let latencies: Vec<_> = findings.latencies.iter().filter(is_wanted).collect();
            let plural = if n == 1 { "" } else { "s" };
            let crowded = findings.is_crowded(n);
            let note = if crowded { STARRED } else { "" };
            let star = if crowded { "*" } else { "" };
            let figure = Figure {
                id: format!("latency-{n}-{}", kind.name()),
                title: format!(
                    "Latency of {} decisions, {n} thread{plural}{star}",
                    kind.name()
                ),
                about: about(&latencies),
                places: &places,
                across: "percentile",
                up: "nanoseconds",
                panels: panels(&latencies),
            };
            writeln!(
                html,
                "<h3>{}</h3>\n<figure>\n{}<figcaption>Nanoseconds that no more than so many of a hundred \
                 decisions exceed, {}, the timing itself included. Lower is better.{note}</figcaption>\n</figure>",
                figure.title,
                figure.svg()?,
                kind.name(),
            )?;
            html.push_str(&figures(&latencies, &figure.title));
        }
    }
    Ok(())
}

/// What looking at a decision costs by itself, on the fewest threads.
fn overhead(latencies: &[Latency<'_>]) -> String {
    let alone = latencies
        .iter()
        .find(|one| one.contest.entry.name == "timing");
    let Some(alone) = alone else {
        return String::new();
    };
    let [p50, .., last] = PERCENTILES.map(|(name, percentile)| (name, short(alone.ns(percentile))));
    let whole = match step_ns(&quanta::Clock::new()) {
        None => String::new(),
        Some(step) => format!(
            " The counter moves in steps of {} ns here, so what takes less is seen as none or as one.",
            short(step),
        ),
    };
    format!(
        "<p>The timing alone, with nothing between two readings of the counter: {} ns at {}, {} ns at {}. It \
         is part of every figure.{whole}</p>\n",
        p50.1, p50.0, last.1, last.0,
    )
}

fn panels(latencies: &[&Latency<'_>]) -> Vec<Panel> {
    let panel = |(source, title)| {
        let is_in = |one: &&&Latency<'_>| {
            let own = one.contest.entry.source;
            own == source || own == Source::Raw
        };
        let line = |one: &&Latency<'_>| Line {
            look: Look::of(one.contest.entry.subject),
            figures: PERCENTILES.map(|(_, percentile)| one.ns(percentile)).into(),
        };
        Panel {
            title,
            lines: latencies.iter().filter(is_in).map(line).collect(),
        }
    };
    PANELS.map(panel).into()
}

fn about(latencies: &[&Latency<'_>]) -> String {
    let mut text =
        "Three panels, one for each source of time; a line for each contestant, by percentile. \
                    The table below has all figures."
            .to_owned();
    for (name, percentile) in PERCENTILES {
        let figures = latencies.iter().map(|one| one.ns(percentile));
        let (low, high) = figures.fold((f64::INFINITY, 0.0_f64), |(low, high), figure| {
            (low.min(figure), high.max(figure))
        });
        // Writing to a String can't fail.
        let _ = write!(text, " {name}: from {} to {} ns.", short(low), short(high));
    }
    text
}

fn figures(latencies: &[&Latency<'_>], title: &str) -> String {
    let mut head = vec!["contestant".to_owned()];
    head.extend(PERCENTILES.map(|(name, _)| format!("{name}, ns")));
    head.push("decisions".to_owned());
    let row = |one: &&Latency<'_>| {
        let mut cells = vec![one.contest.entry.label()];
        cells.extend(PERCENTILES.map(|(_, percentile)| short(one.ns(percentile))));
        cells.push(one.decisions().to_string());
        cells
    };
    let rows: Vec<_> = latencies.iter().map(row).collect();
    table(title, &head, &rows)
}
