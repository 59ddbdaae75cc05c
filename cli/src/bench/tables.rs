//! A table of the cost of a decision for each number of threads.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Table};
use console::style;

use super::contestants::timing::Kind;
use super::rows::{Row, short};
use crate::table::bare;

/// Returns the tables, and a legend of their columns.
pub(crate) fn tables(rows: &[Row<'_>]) -> String {
    let mut text = String::new();
    for rows in rows.chunk_by(|a, b| a.threads == b.threads) {
        let title = match rows.first().map(|row| row.threads) {
            Some(1) => "1 thread".to_owned(),
            n => format!("{} threads on one limiter", n.unwrap_or_default()),
        };
        // Writing to a String can't fail.
        let _ = write!(text, "\n{}\n{}\n", style(title).bold(), table(rows));
    }
    text + LEGEND
}

const LEGEND: &str = "
ns     time of a decision on its thread
M/s    million decisions a second, all threads together
floor  ns relative to the first row, which has no limiter
mutex  throughput relative to a bucket in a std mutex on the same clock

floor                   no limiter: a clock reading and one exchange of a word
private words           the same, with a word for each thread
60 slots, log of 1000   sliding windows: SlottedWindow, SlidingLog
keyed                   a limit for each key in one table: Keyed
std mutex, parking_lot  a token bucket behind such a mutex
";

/// Returns a table with allowed decisions on the left and denied ones on the right.
fn table(rows: &[Row<'_>]) -> Table {
    let mut table = bare();
    let columns = ["ns", "M/s", "floor", "mutex"];
    let mut head = vec![Cell::new("")];
    for kind in Kind::BOTH {
        // The first column of each half names its kind of decision.
        let names = [kind.name(), "", "", ""];
        let cells = names.iter().zip(columns);
        head.extend(cells.map(|(half, column)| number(format!("{half}\n{column}"))));
    }
    table.set_header(head);
    for one in rows
        .iter()
        .filter(|row| row.contest.entry.kind == Kind::BOTH[0])
    {
        let mut cells = vec![Cell::new(one.contest.entry.label())];
        for kind in Kind::BOTH {
            let is_same = |row: &&Row<'_>| {
                let entry = &row.contest.entry;
                (entry.name, entry.kind) == (one.contest.entry.name, kind)
            };
            if let Some(row) = rows.iter().find(is_same) {
                let figures = [row.ns_per_op, row.mops, row.vs_floor, row.vs_mutex];
                cells.extend(figures.map(|figure| number(short(figure))));
            }
        }
        table.add_row(cells);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        // Widens the gap between the halves.
        column.set_padding((if i % columns.len() == 1 { 2 } else { 0 }, 0));
    }
    table
}

pub(crate) fn number(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
