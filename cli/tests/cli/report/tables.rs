//! The tables of the page.

use std::collections::BTreeSet;

use super::{CONTESTANTS, KINDS, PAGE, PERCENTILES, THREADS, TIMING, parsed, tables, text};

/// As the tables call the contestants.
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
    assert_eq!(tables.len(), KINDS.len() + KINDS.len() * THREADS.len());
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
            // Enough that the last percentile is not just the slowest one.
            assert!(figures[4] >= 20_000.0, "{label}: {cells:?}");
        }
    }
    let wanted = KINDS.into_iter().flat_map(|kind| {
        ["1 thread", "2 threads"].map(|threads| format!("{kind} decisions, {threads}"))
    });
    assert_eq!(seen, wanted.collect());
    let body = text(document.root_element());
    let overhead = "The timing alone, with nothing between two readings of the counter: ";
    assert!(body.contains(overhead), "{body}");
}
