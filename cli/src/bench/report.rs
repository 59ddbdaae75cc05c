//! The figures, as rows of JSON and as tables.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Table, TableComponent, presets};
use console::style;
use serde::Serialize;

use super::contestants::Source;
use super::contestants::timing::Kind;
use super::measure::Measured;

/// One object of the JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    threads: usize,
    ns_per_op: f64,
    mops: f64,
    vs_floor: f64,
    vs_mutex: f64,
}

/// The figures with what follows from them, in the order of the measurements.
pub(crate) fn rows(measured: &[Measured]) -> Vec<Row> {
    measured
        .iter()
        .map(|one| Row {
            name: row_name(one.entry.name, one.entry.kind),
            threads: one.threads,
            ns_per_op: rounded(one.ns),
            mops: rounded(1e3 * one.threads as f64 / one.ns),
            vs_floor: rounded(one.ns / peer(measured, one, "floor")),
            vs_mutex: rounded(peer(measured, one, mutex_of(one.entry.source)) / one.ns),
        })
        .collect()
}

/// What the named contestant needs for the same kind of decision with as many threads.
fn peer(measured: &[Measured], one: &Measured, name: &str) -> f64 {
    let same = |other: &&Measured| {
        (other.entry.name, other.entry.kind, other.threads) == (name, one.entry.kind, one.threads)
    };
    measured
        .iter()
        .find(same)
        .map_or(f64::NAN, |other| other.ns)
}

/// The mutex with the same clock.
const fn mutex_of(source: Source) -> &'static str {
    match source {
        Source::Raw | Source::System => "std_mutex_system",
        Source::Coarse => "std_mutex_coarse",
        Source::Tick => "std_mutex_tick",
    }
}

/// To four places: more would be noise.
fn rounded(figure: f64) -> f64 {
    (figure * 1e4).round() / 1e4
}

/// A table for each number of threads.
pub(crate) fn tables(measured: &[Measured], rows: &[Row]) -> String {
    let mut text = String::new();
    for threads in measured.chunk_by(|a, b| a.threads == b.threads) {
        let Some(n) = threads.first().map(|one| one.threads) else {
            continue;
        };
        let title = match n {
            1 => "1 thread".to_owned(),
            n => format!("{n} threads on one limiter"),
        };
        // Writing to a String can't fail.
        let _ = write!(
            text,
            "\n{}\n{}\n",
            style(title).bold(),
            table(threads, rows)
        );
    }
    text + LEGEND
}

const LEGEND: &str = "
ns     what a decision costs the thread that makes it
M/s    million decisions a second, of all threads together
floor  ns divided by the floor's: the clock and one exchange (denied: one load)
mutex  times the decisions of the same bucket in a std mutex with the same clock
";

/// Allowed on the left, denied on the right.
fn table(measured: &[Measured], rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    let columns = ["ns", "M/s", "floor", "mutex"];
    let mut head = vec![Cell::new("")];
    for kind in Kind::BOTH {
        // The first column of each half says which it is.
        let names = [kind.name(), "", "", ""];
        let cells = names.iter().zip(columns);
        head.extend(cells.map(|(half, column)| number(format!("{half}\n{column}"))));
    }
    table.set_header(head);
    for one in measured
        .iter()
        .filter(|one| one.entry.kind == Kind::BOTH[0])
    {
        let mut cells = vec![Cell::new(one.entry.label)];
        for kind in Kind::BOTH {
            let name = row_name(one.entry.name, kind);
            let same = |row: &&Row| row.name == name && row.threads == one.threads;
            if let Some(row) = rows.iter().find(same) {
                cells.extend(row.cells());
            }
        }
        table.add_row(cells);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        // A gap between the halves.
        column.set_padding((if i % columns.len() == 1 { 2 } else { 0 }, 0));
    }
    table
}

impl Row {
    fn cells(&self) -> [Cell; 4] {
        [self.ns_per_op, self.mops, self.vs_floor, self.vs_mutex].map(|n| number(short(n)))
    }
}

/// To three places, or to the whole: what a person takes in, and narrow.
fn short(figure: f64) -> String {
    let decimals = match figure {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{figure:.decimals$}")
}

fn number(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn row_name(name: &str, kind: Kind) -> String {
    format!("{name}_{}", kind.name())
}
