//! The latency section of the page.

use std::error::Error;
use std::fmt::Write;

use super::figure::{Figure, Line, Panel};
use super::html::table;
use super::style::Look;
use super::verdict::{Measure, Scene, Standing, verdict};
use super::view::{Part, VIEWS};
use super::{Findings, STARRED, described, list};
use crate::bench::contestants::timing::Kind;
use crate::bench::latency::{Latency, PERCENTILES};
use crate::bench::machine::step_ns;
use crate::bench::rows::short;

/// Writes sentences and a picture for each view, and a table, for each number of threads and kind
/// of decision.
pub(crate) fn write(html: &mut String, findings: &Findings<'_>) -> Result<(), Box<dyn Error>> {
    html.push_str("<h2>Latency of single decisions</h2>\n");
    let step = step_ns(&quanta::Clock::new());
    html.push_str(&overhead(findings.latencies, step));
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
            let title = format!(
                "Latency of {} decisions, {n} thread{plural}{star}",
                kind.name()
            );
            for view in VIEWS {
                let parts = view.panels(latencies.iter().map(|one| &one.contest.entry));
                if parts.is_empty() {
                    continue;
                }
                let figure = Figure {
                    id: format!("{}latency-{n}-{}", view.id, kind.name()),
                    title: format!("{title}{}", view.title),
                    about: about(&latencies, &parts),
                    places: &places,
                    across: "percentile",
                    up: "nanoseconds",
                    panels: panels(&latencies, &parts),
                };
                writeln!(html, "<h3>{}</h3>", figure.title)?;
                let scene = Scene {
                    lead: "",
                    measure: Measure::Latency {
                        step: step.unwrap_or(0.0),
                    },
                    threads: n,
                    crowded,
                };
                list(html, "verdict", &verdicts(&latencies, &parts, scene))?;
                writeln!(
                    html,
                    "<figure tabindex=\"0\">\n{}<figcaption>Latency by percentile in nanoseconds, {} decisions, \
                     including the timing itself. Lower is better.{note}\
                     </figcaption>\n</figure>",
                    figure.svg()?,
                    kind.name(),
                )?;
            }
            html.push_str(&figures(&latencies, &title));
        }
    }
    Ok(())
}

/// Returns a paragraph on what timing a decision costs by itself, with the fewest threads.
fn overhead(latencies: &[Latency<'_>], step: Option<f64>) -> String {
    let alone = latencies
        .iter()
        .find(|one| one.contest.entry.name == "timing");
    let Some(alone) = alone else {
        return String::new();
    };
    let [p50, .., last] = PERCENTILES.map(|(name, percentile)| (name, short(alone.ns(percentile))));
    let whole = match step {
        None => String::new(),
        Some(step) => format!(
            " The counter advances in steps of {} ns here, so a shorter time shows as zero or one step.",
            short(step),
        ),
    };
    format!(
        "<p>The timing alone, two readings of the counter with nothing between them, takes {} ns at {} and {} \
         ns at {}. Every figure includes it.{whole}</p>\n",
        p50.1, p50.0, last.1, last.0,
    )
}

/// The percentile that the sentences compare. Higher ones often show other programs' activity.
const JUDGED: f64 = 99.0;

/// Smaller differences, in nanoseconds, are not visible.
const LEAST: f64 = 1.0;

/// Returns a sentence for each part.
fn verdicts(latencies: &[&Latency<'_>], parts: &[&Part], scene: Scene<'_>) -> Vec<String> {
    let judged = |part: &&Part| {
        let shown = latencies.iter();
        let shown = shown.filter(|one| part.shows(&one.contest.entry));
        let standings = shown.map(|one| Standing {
            entry: &one.contest.entry,
            cost: one.ns(JUDGED).max(LEAST),
        });
        let scene = Scene {
            lead: part.lead,
            ..scene
        };
        verdict(scene, &standings.collect::<Vec<_>>())
    };
    parts.iter().map(judged).collect()
}

fn panels(latencies: &[&Latency<'_>], parts: &[&Part]) -> Vec<Panel> {
    let panel = |part: &&Part| {
        let shown = latencies.iter();
        let shown = shown.filter(|one| part.shows(&one.contest.entry));
        let line = |one: &&Latency<'_>| Line {
            look: Look::of(one.contest.entry.subject),
            figures: PERCENTILES.map(|(_, percentile)| one.ns(percentile)).into(),
        };
        Panel {
            title: part.title,
            lines: shown.map(line).collect(),
        }
    };
    parts.iter().map(panel).collect()
}

fn about(latencies: &[&Latency<'_>], parts: &[&Part]) -> String {
    let mut text = described(parts, "by percentile");
    let is_shown = |one: &&&Latency<'_>| parts.iter().any(|part| part.shows(&one.contest.entry));
    let shown: Vec<_> = latencies.iter().filter(is_shown).collect();
    for (name, percentile) in PERCENTILES {
        let figures = shown.iter().map(|one| one.ns(percentile));
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
