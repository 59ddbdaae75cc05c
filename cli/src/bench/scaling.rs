//! The scaling figures: the machine's own contention, and a table by number of threads.

use std::fmt::Write;

use comfy_table::{Cell, Table};
use console::style;

use super::contestants::timing::Kind;
use super::crowding::{Crowding, on_private_words};
use super::measure::Measured;
use super::placement::Placement;
use super::rows::{Row, short};
use super::tables::number;
use super::topology::{Cores, Topology};
use crate::table::bare;

/// The number of columns for numbers of threads that fit side by side.
const ABREAST: usize = 4;

/// Describes the machine, and which processors each number of threads ran on.
pub(crate) fn machine(
    topology: &Topology,
    threads: &[usize],
    placement: &Placement,
) -> Vec<String> {
    let placed = threads.iter().filter_map(|&n| placement.placed(n));
    let mut lines = topology.lines();
    lines.extend(placed.map(|placed| placed.line()));
    lines.extend(placement.note().map(str::to_owned));
    lines
}

/// What [`contention`] describes.
pub(crate) const CONTENTION: &str =
    "without a limiter, a clock reading and a compare-and-swap (floor, private words)";

/// Describes how the machine scales without a limiter, for threads that share a word and threads
/// that do not. Writes a line for each number of threads, and another one if these threads do not
/// have a core each.
pub(crate) fn contention(threads: &[usize], cores: Cores, measured: &[Measured<'_>]) -> String {
    let mut text = String::new();
    for &n in threads.iter().filter(|&&n| n > 1) {
        let ns = |name| {
            let is_wanted = |one: &&Measured<'_>| {
                let entry = &one.contest.entry;
                (entry.name, entry.kind, one.contest.threads) == (name, Kind::Allowed, n)
            };
            let found = measured.iter().find(is_wanted);
            short(found.map_or(f64::NAN, |one| one.ns))
        };
        // Writing to a String can't fail.
        let _ = write!(
            text,
            "{n} threads: {} ns on one word, {} on private words",
            ns("floor"),
            ns("private"),
        );
        if let Some(times) = on_private_words(n, measured) {
            let _ = write!(text, " ({times:.2} times one thread)");
        }
        text.push('\n');
        if let Some(crowding) = Crowding::of(n, cores, measured) {
            let _ = writeln!(text, "{}", crowding.note(n));
        }
    }
    text
}

/// Returns the scaling tables if there are several numbers of threads.
pub(crate) fn tables(
    threads: &[usize],
    cores: Cores,
    measured: &[Measured<'_>],
    rows: &[Row<'_>],
) -> String {
    let mut text = String::new();
    if threads.len() < 2 {
        return text;
    }
    let heads: Vec<_> = threads
        .iter()
        .map(|&n| (n, Crowding::of(n, cores, measured).is_some()))
        .collect();
    for kind in Kind::BOTH {
        let title = format!("scaling, {}", kind.name());
        // Writing to a String can't fail.
        let _ = write!(text, "\n{}\n", style(title).bold());
        for heads in heads.chunks(ABREAST) {
            let _ = writeln!(text, "{}", table(kind, heads, rows));
        }
    }
    text += LEGEND;
    if !threads.contains(&1) {
        text += "-      one thread was not measured; add it to --threads\n";
    }
    if heads.iter().any(|&(_, is_crowded)| is_crowded) {
        text += "*      these threads do not have a core each: see above\n";
    }
    text
}

const LEGEND: &str = "
M/s    million decisions a second, all threads together
times  M/s relative to one thread
";

/// Returns a table with a row for each contestant and two columns for each number of threads.
fn table(kind: Kind, heads: &[(usize, bool)], rows: &[Row<'_>]) -> Table {
    let mut table = bare();
    let mut head = vec![Cell::new("threads")];
    for &(n, is_crowded) in heads {
        let mark = if is_crowded { "*" } else { "" };
        head.push(number(format!("{n}{mark}\nM/s")));
        head.push(number("\ntimes".to_owned()));
    }
    table.set_header(head);
    let of_kind = |row: &&Row<'_>| row.contest.entry.kind == kind;
    let first = heads.first().map_or(0, |&(n, _)| n);
    for one in rows
        .iter()
        .filter(of_kind)
        .filter(|row| row.threads == first)
    {
        let mut cells = vec![Cell::new(one.contest.entry.label())];
        for &(n, _) in heads {
            let is_same = |row: &&Row<'_>| {
                (row.contest.entry.name, row.threads) == (one.contest.entry.name, n)
            };
            if let Some(row) = rows.iter().filter(of_kind).find(is_same) {
                cells.push(number(short(row.mops)));
                cells.push(number(row.vs_one_thread.map_or("-".to_owned(), short)));
            }
        }
        table.add_row(cells);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        // Widens the gap before each number of threads.
        column.set_padding((if i % 2 == 1 { 3 } else { 0 }, 0));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{Cores, contention, tables};

    #[test]
    fn threads_without_a_core_each_are_marked_and_explained() {
        let cores = Cores {
            logical: 8,
            whole: None,
        };
        let text = tables(&[1, 9], cores, &[], &[]);
        assert!(text.contains(" 9*") && !text.contains(" 1*"), "{text}");
        assert!(text.contains("these threads do not have a core each"));
        let text = contention(&[1, 9], cores, &[]);
        assert!(text.contains("9 threads on 8 cores take turns"), "{text}");
    }
}
