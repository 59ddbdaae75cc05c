//! The throughput section of the page.

use std::error::Error;
use std::fmt::Write;

use super::figure::{Figure, Line, Panel};
use super::html::table;
use super::style::Look;
use super::verdict::{Measure, Scene, Standing, verdict};
use super::view::{Part, VIEWS};
use super::{Findings, STARRED, described, list};
use crate::bench::contestants::timing::Kind;
use crate::bench::rows::{Row, short};

/// Writes sentences and a picture for each view, and a table, for each kind of decision.
pub(crate) fn write(html: &mut String, findings: &Findings<'_>) -> Result<(), Box<dyn Error>> {
    html.push_str("<h2>Throughput by threads</h2>\n");
    let starred = findings.threads.iter().map(|&n| findings.starred(n));
    let places: Vec<_> = starred.collect();
    let note = if places.iter().any(|place| place.ends_with('*')) {
        STARRED
    } else {
        ""
    };
    for kind in Kind::BOTH {
        let rows: Vec<_> = of_kind(findings.rows, kind).collect();
        for view in VIEWS {
            let parts = view.panels(rows.iter().map(|row| &row.contest.entry));
            if parts.is_empty() {
                continue;
            }
            let figure = Figure {
                id: format!("{}throughput-{}", view.id, kind.name()),
                title: format!(
                    "Throughput of {} decisions, by threads{}",
                    kind.name(),
                    view.title
                ),
                about: about(&rows, &parts, findings.threads),
                places: &places,
                across: "threads",
                up: "million decisions a second",
                panels: panels(&rows, &parts, findings.threads),
            };
            writeln!(html, "<h3>{}</h3>", figure.title)?;
            list(html, "verdict", &verdicts(&rows, &parts, findings))?;
            writeln!(
                html,
                "<figure tabindex=\"0\">\n{}<figcaption>Million decisions a second of all threads together, \
                 {}. Higher is better.{note}</figcaption>\n</figure>",
                figure.svg()?,
                kind.name(),
            )?;
        }
        html.push_str(&figures(&rows, findings, kind));
    }
    Ok(())
}

/// Returns sentences for each panel: for the fewest threads, and for the most that have a core
/// each.
fn verdicts(rows: &[&Row<'_>], parts: &[&Part], findings: &Findings<'_>) -> Vec<String> {
    let threads = || findings.threads.iter().copied();
    let with_cores = threads().filter(|&n| !findings.is_crowded(n)).max();
    let fewest = threads().min();
    let most = with_cores.filter(|&n| n > 1).or_else(|| threads().max());
    let mut verdicts = Vec::new();
    for part in parts {
        for n in fewest.into_iter().chain(most.filter(|_| most != fewest)) {
            let of_n = rows.iter().filter(|row| row.threads == n);
            let shown = of_n.filter(|row| part.shows(&row.contest.entry));
            let standings = shown.map(|row| Standing {
                entry: &row.contest.entry,
                cost: row.ns_per_op,
            });
            let scene = Scene {
                lead: part.lead,
                measure: Measure::Throughput,
                threads: n,
                crowded: findings.is_crowded(n),
            };
            verdicts.push(verdict(scene, &standings.collect::<Vec<_>>()));
        }
    }
    verdicts
}

fn of_kind<'a>(rows: &'a [Row<'a>], kind: Kind) -> impl Iterator<Item = &'a Row<'a>> {
    rows.iter()
        .filter(move |row| row.contest.entry.kind == kind)
}

/// Returns one row for each contestant, with the first number of threads.
fn contestants<'a>(rows: &[&'a Row<'a>]) -> Vec<&'a Row<'a>> {
    let first = rows.first().map_or(0, |row| row.threads);
    let of_first = rows.iter().filter(|row| row.threads == first);
    of_first.copied().collect()
}

/// Returns the same contestant's rows, one for each number of threads.
fn with_threads<'a>(rows: &[&'a Row<'a>], one: &Row<'_>, threads: &[usize]) -> Vec<&'a Row<'a>> {
    let find = |&n: &usize| {
        let is_same =
            |row: &&&Row<'_>| (row.contest.entry.name, row.threads) == (one.contest.entry.name, n);
        rows.iter().find(is_same).copied()
    };
    threads.iter().filter_map(find).collect()
}

/// Returns the panels, with a line for each contestant.
fn panels(rows: &[&Row<'_>], parts: &[&Part], threads: &[usize]) -> Vec<Panel> {
    let panel = |part: &&Part| {
        let shown = contestants(rows).into_iter();
        let shown = shown.filter(|row| part.shows(&row.contest.entry));
        let line = |one: &Row<'_>| Line {
            look: Look::of(one.contest.entry.subject),
            figures: with_threads(rows, one, threads)
                .iter()
                .map(|row| row.mops)
                .collect(),
        };
        Panel {
            title: part.title,
            lines: shown.map(line).collect(),
        }
    };
    parts.iter().map(panel).collect()
}

fn about(rows: &[&Row<'_>], parts: &[&Part], threads: &[usize]) -> String {
    let best = |n| {
        let of_n = rows.iter().filter(|row| row.threads == n);
        let is_shown = |row: &&&Row<'_>| parts.iter().any(|part| part.shows(&row.contest.entry));
        of_n.filter(is_shown)
            .max_by(|a, b| a.mops.total_cmp(&b.mops))
    };
    let mut text = described(parts, "by the number of threads");
    for &n in threads {
        if let Some(best) = best(n) {
            let (label, mops) = (best.contest.entry.label(), short(best.mops));
            // Writing to a String can't fail.
            let plural = if n == 1 { "" } else { "s" };
            let _ = write!(text, " Highest with {n} thread{plural}: {label}, {mops}.");
        }
    }
    text
}

/// Returns the table, with two columns for each number of threads.
fn figures(rows: &[&Row<'_>], findings: &Findings<'_>, kind: Kind) -> String {
    let mut head = vec!["contestant".to_owned()];
    for &n in findings.threads {
        let plural = if n == 1 { "" } else { "s" };
        head.push(format!("{} thread{plural}, M/s", findings.starred(n)));
        head.push("times one thread".to_owned());
    }
    let row = |one: &&Row<'_>| {
        let mut cells = vec![one.contest.entry.label()];
        for row in with_threads(rows, one, findings.threads) {
            cells.push(short(row.mops));
            cells.push(row.vs_one_thread.map_or("-".to_owned(), short));
        }
        cells
    };
    let table_rows: Vec<_> = contestants(rows).iter().map(row).collect();
    let caption = format!(
        "Million {} decisions a second, all threads together",
        kind.name()
    );
    table(&caption, &head, &table_rows)
}
