//! The tables of the page.

use std::collections::{BTreeMap, BTreeSet};

use super::{CONTESTANTS, KINDS, PAGE, PERCENTILES, THREADS, TIMING, parsed, tables, text};
use crate::PEERS;

/// Returns the contestants' names in the tables.
fn labels() -> BTreeSet<&'static str> {
    CONTESTANTS.iter().map(|(_, label)| *label).collect()
}

fn numbers(cells: &[String]) -> Vec<f64> {
    let figures: Vec<f64> = cells.iter().map(|cell| cell.parse().expect(cell)).collect();
    let are_figures = figures.iter().all(|it| it.is_finite() && *it >= 0.0);
    assert!(are_figures, "{cells:?}");
    figures
}

#[test]
fn its_tables_have_every_contestant_on_every_number_of_threads() {
    let document = parsed(&PAGE.1);
    let tables = tables(&document);
    assert_eq!(tables.len(), KINDS.len() + KINDS.len() * THREADS.len() + 1);
    for kind in KINDS {
        let caption = format!("Million {kind} decisions a second, all threads together");
        let (heads, rows) = &tables[&caption];
        assert_eq!(heads.len(), 1 + 2 * THREADS.len());
        assert_eq!(heads[1], "1 thread, M/s");
        assert!(
            heads[3].starts_with('2') && heads[3].ends_with(" threads, M/s"),
            "{heads:?}"
        );
        assert!(rows.keys().eq(labels()), "{:?}", rows.keys());
        for cells in rows.values() {
            assert_eq!((numbers(cells).len(), &*cells[1]), (4, "1.00"));
        }
    }
}

#[test]
fn its_tables_have_every_percentile_and_the_timing_itself() {
    let document = parsed(&PAGE.1);
    let mut seen = BTreeSet::new();
    for (caption, (heads, rows)) in tables(&document) {
        let Some(of) = caption.strip_prefix("Latency of ") else {
            continue;
        };
        seen.insert(of.trim_end_matches('*').to_owned());
        assert_eq!(heads[1..=4], PERCENTILES.map(|name| format!("{name}, ns")));
        assert_eq!(heads[5], "decisions");
        let mut wanted = labels();
        wanted.insert(TIMING);
        assert!(rows.keys().eq(wanted), "{:?}", rows.keys());
        for (label, cells) in &rows {
            let figures = numbers(cells);
            assert!(figures[..4].is_sorted(), "{label}: {cells:?}");
            // Enough decisions that the last percentile is more than the single slowest one.
            assert!(figures[4] >= 20_000.0, "{label}: {cells:?}");
        }
    }
    let wanted = KINDS.into_iter().flat_map(|kind| {
        ["1 thread", "2 threads"].map(|threads| format!("{kind} decisions, {threads}"))
    });
    assert_eq!(seen, wanted.collect());
    let body = text(document.root_element());
    let overhead =
        "The timing alone, two readings of the counter with nothing between them, takes ";
    assert!(body.contains(overhead), "{body}");
}

#[test]
fn a_table_lists_what_others_can_not_do() {
    let document = parsed(&PAGE.1);
    let tables = tables(&document);
    let (heads, rows) = &tables["What the other limiters can't do"];
    assert_eq!(heads[..], ["limiter", "clock", "what it can't do"]);
    let mutexes = ["parking_lot", "std mutex"].map(|name| (name, "any"));
    let peers = PEERS.iter().filter_map(|(_, label)| label.split_once(", "));
    let wanted: BTreeMap<_, _> = mutexes.into_iter().chain(peers).collect();
    assert!(rows.keys().eq(wanted.keys()), "{rows:?}");
    for (name, cells) in rows {
        assert_eq!(cells[0], wanted[&**name]);
        assert!(cells[1].ends_with('.') && cells[1].len() > 40, "{cells:?}");
    }
    let body = text(document.root_element());
    let is_told = body.contains("--features peers -- bench --report DIR");
    assert_eq!(is_told, PEERS.is_empty(), "how to get the others");
}
