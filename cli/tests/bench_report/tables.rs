//! What it was measured on, and the tables.

use std::collections::BTreeSet;
use std::path::Path;

use crate::page::{
    KINDS, PERCENTILES, THREADS, TIMING, all, labels, number, page, parsed, tables, text,
};

#[test]
fn it_says_what_it_was_measured_on() {
    let (printed, page) = page();
    let document = parsed(page);
    let mut head = printed.lines();
    let (machine, versions) = (head.next().expect("a line"), head.next().expect("a second"));
    assert!(
        machine.contains("core") && versions.contains("rustc"),
        "{printed}"
    );
    let title = all(document.root_element(), "title").map(text).next();
    assert_eq!(title, Some(format!("What a decision costs: {machine}")));
    let body = text(document.root_element());
    assert!(body.contains(machine) && body.contains(versions), "{body}");
    // And where it is.
    let path = printed.lines().last().expect("a last line");
    assert!(
        path.ends_with("new/folders/index.html") && Path::new(path).exists(),
        "{path}"
    );
    for line in printed
        .lines()
        .filter(|line| line.contains("on a word each"))
    {
        assert!(body.contains(line), "{line} is not on the page");
    }
}

#[test]
fn its_tables_have_every_contestant_on_every_number_of_threads() {
    let document = parsed(&page().1);
    let tables = tables(&document);
    assert_eq!(tables.len(), KINDS.len() + KINDS.len() * THREADS.len());
    for kind in KINDS {
        let caption = format!("Million {kind} decisions a second, all threads together");
        let (heads, rows) = &tables[&caption];
        assert_eq!(heads.len(), 1 + 2 * THREADS.len());
        assert_eq!(heads[1], "1 thread, M/s");
        assert!(
            heads[3].starts_with("2") && heads[3].ends_with(" threads, M/s"),
            "{heads:?}"
        );
        assert!(rows.keys().cloned().eq(labels()), "{:?}", rows.keys());
        for cells in rows.values() {
            cells.iter().for_each(|cell| _ = number(cell));
            assert_eq!(cells[1], "1.00");
        }
    }
}

#[test]
fn its_tables_have_every_percentile_and_the_timing_itself() {
    let document = parsed(&page().1);
    let mut seen = BTreeSet::new();
    for (caption, (heads, rows)) in tables(&document) {
        let Some(of) = caption.strip_prefix("Latency of ") else {
            continue;
        };
        seen.insert(of.trim_end_matches('*').to_owned());
        let wanted = PERCENTILES.map(|name| format!("{name}, ns"));
        assert_eq!(heads[1..=4], wanted);
        assert_eq!(heads[5], "decisions");
        let mut wanted = labels();
        wanted.insert(TIMING.to_owned());
        assert!(rows.keys().cloned().eq(wanted), "{:?}", rows.keys());
        for (label, cells) in &rows {
            let figures: Vec<_> = cells.iter().map(|cell| number(cell)).collect();
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
