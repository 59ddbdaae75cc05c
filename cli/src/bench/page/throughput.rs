//! How many decisions all threads make together.

use std::error::Error;
use std::fmt::Write;

use super::figure::{Figure, Line, Panel};
use super::html::table;
use super::style::Look;
use super::{Findings, PANELS, STARRED};
use crate::bench::contestants::Source;
use crate::bench::contestants::timing::Kind;
use crate::bench::rows::{Row, short};

/// A picture and a table for each kind of decision.
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
        let figure = Figure {
            id: format!("throughput-{}", kind.name()),
            title: format!("Throughput of {} decisions, by threads", kind.name()),
            about: about(&rows, findings.threads),
            places: &places,
            across: "threads",
            up: "million decisions a second",
            panels: panels(&rows, findings.threads),
        };
        writeln!(
            html,
            "<h3>{}</h3>\n<figure>\n{}<figcaption>Million decisions a second of all threads together, \
             {}. Higher is better.{note}</figcaption>\n</figure>",
            figure.title,
            figure.svg()?,
            kind.name(),
        )?;
        html.push_str(&figures(&rows, findings, kind));
    }
    Ok(())
}

fn of_kind<'a>(rows: &'a [Row<'a>], kind: Kind) -> impl Iterator<Item = &'a Row<'a>> {
    rows.iter()
        .filter(move |row| row.contest.entry.kind == kind)
}

/// Those with the fewest threads stand for all.
fn contestants<'a>(rows: &[&'a Row<'a>]) -> Vec<&'a Row<'a>> {
    let first = rows.first().map_or(0, |row| row.threads);
    let of_first = rows.iter().filter(|row| row.threads == first);
    of_first.copied().collect()
}

/// The same contestant with each number of threads.
fn with_threads<'a>(rows: &[&'a Row<'a>], one: &Row<'_>, threads: &[usize]) -> Vec<&'a Row<'a>> {
    let find = |&n: &usize| {
        let is_same =
            |row: &&&Row<'_>| (row.contest.entry.name, row.threads) == (one.contest.entry.name, n);
        rows.iter().find(is_same).copied()
    };
    threads.iter().filter_map(find).collect()
}

/// Each source of time with its contestants. The floors have none, and stand in all.
fn panels(rows: &[&Row<'_>], threads: &[usize]) -> Vec<Panel> {
    let panel = |(source, title)| {
        let is_in = |row: &&&Row<'_>| {
            let own = row.contest.entry.source;
            own == source || own == Source::Raw
        };
        let line = |one: &&Row<'_>| Line {
            look: Look::of(one.contest.entry.subject),
            figures: with_threads(rows, one, threads)
                .iter()
                .map(|row| row.mops)
                .collect(),
        };
        Panel {
            title,
            lines: contestants(rows).iter().filter(is_in).map(line).collect(),
        }
    };
    // Not every measurement has contestants of each source.
    let is_used = |(source, _): &(Source, _)| {
        let mut all = contestants(rows).into_iter();
        all.any(|row| row.contest.entry.source == *source)
    };
    PANELS.into_iter().filter(is_used).map(panel).collect()
}

fn about(rows: &[&Row<'_>], threads: &[usize]) -> String {
    let best = |n| {
        let of_n = rows.iter().filter(|row| row.threads == n);
        of_n.max_by(|a, b| a.mops.total_cmp(&b.mops))
    };
    let mut text =
        "Three panels, one for each source of time; a line for each contestant, by the number \
                    of threads. The table below has all figures."
            .to_owned();
    for &n in threads {
        if let Some(best) = best(n) {
            let (label, mops) = (best.contest.entry.label(), short(best.mops));
            // Writing to a String can't fail.
            let _ = write!(text, " Most with {n}: {label}, {mops}.");
        }
    }
    text
}

/// Two columns for each number of threads.
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
