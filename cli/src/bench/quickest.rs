//! A table that names the fastest limiter, for granted and for denied requests.

use std::fmt::Write;

use comfy_table::Cell;
use console::style;

use super::contestants::Source;
use super::contestants::timing::Kind;
use super::rows::{Row, TIE, short};
use super::tables::number;
use crate::table::bare;

/// The limiters that take a bucket's quota, the simplest first.
const LIMITERS: [&str; 3] = ["token bucket", "sharded", "lease"];

const CLOCKS: [(Source, &str); 3] = [
    (Source::System, "system"),
    (Source::Coarse, "coarse"),
    (Source::Tick, "given tick"),
];

/// Returns the table and its legend.
pub(crate) fn table(threads: &[usize], rows: &[Row<'_>]) -> String {
    let mut table = bare();
    let mut head = vec![Cell::new("threads, clock")];
    for kind in Kind::BOTH {
        head.extend([Cell::new(kind.name()), number("ns".to_owned())]);
    }
    table.set_header(head);
    for &n in threads {
        for (source, clock) in CLOCKS {
            let mut cells = vec![Cell::new(format!("{n}, {clock}"))];
            for kind in Kind::BOTH {
                let figures = LIMITERS.iter().filter_map(|&limiter| {
                    let is_it = |row: &&Row<'_>| {
                        let entry = &row.contest.entry;
                        (row.threads, entry.kind) == (n, kind)
                            && (entry.subject, entry.source) == (limiter, source)
                    };
                    Some((limiter, rows.iter().find(is_it)?.ns_per_op))
                });
                if let Some((limiter, ns)) = quickest(figures) {
                    cells.extend([Cell::new(limiter), number(short(ns))]);
                }
            }
            // `--scaling` leaves out the coarse clock.
            if cells.len() > 1 {
                table.add_row(cells);
            }
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = write!(text, "\n{}\n{table}\n", style(TITLE).bold());
    text + LEGEND
}

const TITLE: &str = "which limiter is quickest";

const LEGEND: &str = "
allowed  the quickest limiter for allowed decisions
denied   the quickest limiter for denied decisions
ns       time of a decision on its thread
Limiters within 10 % of the quickest are tied; the table names the simplest one.

token bucket  one word that all threads share: Limiter
sharded       a word for each core: Sharded
lease         each thread takes many permits at a time: Leases
system        the limiter reads the clock for each decision
coarse        a thread reads the clock each millisecond, for all decisions
given tick    the caller passes the time
";

/// Returns the first figure that ties with the lowest.
fn quickest<'a>(
    mut figures: impl Iterator<Item = (&'a str, f64)> + Clone,
) -> Option<(&'a str, f64)> {
    let ns = figures.clone().map(|(_, ns)| ns);
    let least = ns.min_by(f64::total_cmp)?;
    figures.find(|(_, ns)| *ns <= least * TIE)
}

#[cfg(test)]
mod tests {
    use super::quickest;

    #[test]
    fn the_simplest_of_those_within_ten_percent_is_the_quickest() {
        let of = |figures: [f64; 3]| {
            let figures = super::LIMITERS.into_iter().zip(figures);
            quickest(figures).map(|(limiter, _)| limiter)
        };
        assert_eq!(of([10.0, 9.5, 9.2]), Some("token bucket"));
        assert_eq!(of([10.0, 9.0, 8.0]), Some("lease"));
        assert_eq!(of([10.0, 1.0, 0.95]), Some("sharded"));
        assert_eq!(quickest(std::iter::empty()), None);
    }
}
