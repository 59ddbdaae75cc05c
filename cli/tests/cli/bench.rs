//! `tollgate bench`: its JSON has one shape and consistent figures, it prints tables, and its
//! errors name the bad argument.

use std::sync::LazyLock;

use serde_json::Value;

use super::{CONTESTANTS, failure, printed};

fn bench(threads: &str, more: &[&str]) -> String {
    printed(&[&["bench", "--seconds", "0.05", "--threads", threads], more].concat())
}

fn rows(threads: &str) -> Vec<Value> {
    serde_json::from_str(&bench(threads, &["--json"])).expect("an array and nothing else")
}

/// All three figures are rounded to four places.
fn assert_is_product(product: f64, one: f64, other: f64, row: &Value) {
    let (off, rounded) = ((product - one * other).abs(), 0.000_051);
    let is_near = off <= rounded * (1.0 + one + other);
    assert!(is_near, "{product} is not {one} * {other}: {row}");
}

#[test]
fn json_has_a_row_for_each_contestant_and_number_of_threads() {
    let rows = rows("2,1,2");
    let keys = "crowded mops name ns_per_op threads vs_floor vs_mutex vs_one_thread";
    for row in &rows {
        let found = row.as_object().expect("an object").keys();
        assert!(found.eq(keys.split(' ')), "{row}");
    }
    // Both kinds of decisions, and both numbers of threads.
    assert_eq!(rows.len(), 2 * 2 * CONTESTANTS.len());
    for (threads, kind) in [(1, "allowed"), (1, "denied"), (2, "allowed"), (2, "denied")] {
        let find = |name: &str, threads: u64| {
            let name = format!("{name}_{kind}");
            let is_it = |row: &&Value| row["name"] == name && row["threads"] == threads;
            let found: Vec<_> = rows.iter().filter(is_it).collect();
            assert_eq!(found.len(), 1, "{name} with {threads} threads");
            found[0]
        };
        for (name, _) in CONTESTANTS.iter().copied() {
            // The floors and the peers are compared with the mutex on the system clock.
            let source = name.rsplit_once('_').map_or("", |(_, source)| source);
            let has_mutex = ["coarse", "tick"].contains(&source);
            let source = if has_mutex { source } else { "system" };
            let mutex = find(&format!("std_mutex_{source}"), threads);
            let (row, one, floor) = (find(name, threads), find(name, 1), find("floor", threads));
            let figure = |row: &Value, key: &str| {
                let figure = row[key].as_f64().filter(|&figure| figure >= 0.0);
                figure.unwrap_or_else(|| panic!("{key} is not a figure in {row}"))
            };
            let (ns, mops) = (figure(row, "ns_per_op"), figure(row, "mops"));
            let ns_of = |other| figure(other, "ns_per_op");
            assert!(ns > 0.0, "{row}");
            assert_is_product(threads as f64 * 1000.0, mops, ns, row);
            assert_is_product(ns, figure(row, "vs_floor"), ns_of(floor), row);
            assert_is_product(ns_of(mutex), figure(row, "vs_mutex"), ns, row);
            assert_is_product(mops, figure(row, "vs_one_thread"), figure(one, "mops"), row);
            let crowded = row["crowded"].as_bool().expect("yes or no");
            assert!(!crowded || threads > 1, "{row}");
            assert_eq!(row["crowded"], floor["crowded"], "{row}");
        }
    }
}

const ADVICE: &str = "one thread was not measured; add it to --threads";

/// Enough numbers of threads for two scaling tables, one below the other.
const THREADS: [&str; 5] = ["1", "2", "3", "4", "5"];

/// The text before the tables, and the tables. All tests share one measurement.
static TEXT: LazyLock<(String, String)> = LazyLock::new(|| {
    let text = bench(&THREADS.join(","), &[]);
    let color = text.find('\u{1b}');
    assert_eq!(color, None, "colors without a terminal");
    let title = "\nwhich limiter is quickest\n";
    let (head, _) = text.split_once(title).expect("a head and tables");
    (head.to_owned(), text[head.len()..].to_owned())
});

/// Returns the figures of a table's row if it is this contestant's.
fn figures_of<'t>(line: &'t str, label: &str) -> Option<Vec<&'t str>> {
    let figures: Vec<_> = line.strip_prefix(label)?.split_whitespace().collect();
    let is_figure = |figure: &&str| *figure == "-" || figure.parse::<f64>().is_ok();
    (figures.iter().all(is_figure) && !figures.is_empty()).then_some(figures)
}

/// Returns the lines of the tables with this title, up to an empty line.
fn part<'t>(text: &'t str, title: &str) -> Vec<&'t str> {
    let part = text.split_once(&format!("\n{title}\n"));
    let (_, part) = part.unwrap_or_else(|| panic!("no {title}: {text}"));
    part.lines().take_while(|line| !line.is_empty()).collect()
}

/// Returns the numbers of threads above the scaling columns.
fn heads<'t>(part: &[&'t str]) -> Vec<&'t str> {
    let heads = part.iter().filter_map(|line| line.strip_prefix("threads"));
    heads.flat_map(str::split_whitespace).collect()
}

#[test]
fn the_table_names_the_machine_and_has_a_part_for_each_number_of_threads() {
    let (head, tables) = &*TEXT;
    let program = concat!("tollgate ", env!("CARGO_PKG_VERSION"));
    for part in [program, "core", "rustc"] {
        assert!(head.contains(part), "{head}");
    }
    let mut longest = 4;
    for n in THREADS {
        let more = format!("{n} threads on one limiter");
        let title = if n == "1" { "1 thread" } else { &more };
        let part = part(tables, title);
        for (_, label) in CONTESTANTS.iter().copied() {
            let rows: Vec<_> = part.iter().filter_map(|it| figures_of(it, label)).collect();
            assert_eq!((rows.len(), rows[0].len()), (1, 8), "{label}, {title}");
            longest = rows[0].iter().map(|it| it.len()).fold(longest, usize::max);
        }
    }
    // On a very busy machine the figures have more digits, so the eight columns are wider.
    let wide = tables.lines().map(|line| line.chars().count()).max();
    let fits = wide <= Some(80 + 8 * (longest - 4));
    assert!(fits, "{wide:?} columns do not fit a terminal:\n{tables}");
}

#[test]
fn the_scaling_has_two_columns_for_each_number_of_threads() {
    for kind in ["scaling, allowed", "scaling, denied"] {
        let part = part(&TEXT.1, kind);
        let heads = heads(&part).into_iter();
        assert!(heads.map(|head| head.trim_end_matches('*')).eq(THREADS));
        for (_, label) in CONTESTANTS.iter().copied() {
            let rows = part.iter().filter_map(|line| figures_of(line, label));
            let figures: Result<Vec<f64>, _> = rows.flatten().map(str::parse).collect();
            let figures = figures.expect("numbers");
            assert_eq!(figures.len(), 2 * THREADS.len(), "{label} in {kind}");
            assert_eq!(figures[1], 1.0, "{label}: one thread relative to itself");
            assert!(figures.iter().all(|&figure| figure >= 0.0), "{label}");
        }
    }
}

#[test]
fn the_quickest_limiter_of_each_clock_has_the_figure_of_its_own_row() {
    let quickest = part(&TEXT.1, "which limiter is quickest");
    let limiters = ["token bucket", "sharded", "lease"];
    for n in THREADS {
        let title = match n {
            "1" => "1 thread".to_owned(),
            n => format!("{n} threads on one limiter"),
        };
        let rows = part(&TEXT.1, &title);
        for clock in ["system", "coarse", "given tick"] {
            let head = format!("{n}, {clock} ");
            let line = quickest.iter().find_map(|line| line.strip_prefix(&head));
            let mut line = line.expect("a line").trim();
            // The first figure of each half of a row.
            for column in [0, 4] {
                let figure_of = |limiter: &'static str| {
                    let label = format!("{limiter}, {clock}");
                    let figures = rows.iter().find_map(|row| figures_of(row, &label));
                    Some((limiter, figures?[column].parse::<f64>().expect("a number")))
                };
                let figures = limiters.into_iter().filter_map(figure_of);
                let figures: Vec<_> = figures.collect();
                let found = figures
                    .iter()
                    .find(|(limiter, _)| line.starts_with(limiter));
                let &(limiter, ns) = found.expect("a limiter");
                let rest = line[limiter.len()..].trim_start();
                let end = rest.find(' ').unwrap_or(rest.len());
                assert_eq!(rest[..end].parse(), Ok(ns), "{limiter}, {title}: {line}");
                line = rest[end..].trim_start();
                // Figures are rounded to three digits.
                let least = figures.iter().map(|it| it.1).fold(f64::MAX, f64::min);
                assert!(ns <= least * 1.12 + 0.02, "{figures:?}");
            }
        }
    }
}

#[test]
fn the_machines_own_contention_is_printed_before_all_tables() {
    let (before, tables) = &*TEXT;
    for threads in &THREADS[1..] {
        let start = format!("{threads} threads: ");
        let line = before.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("no line for {threads} threads: {before}"));
        assert!(line.contains(" ns on one word, "), "{line}");
        assert!(line.contains(" on private words ("), "{line}");
        assert!(line.ends_with(" times one thread)"), "{line}");
    }
    // Each table begins with the floor on one word and on private words.
    for title in ["1 thread", "2 threads on one limiter", "scaling, denied"] {
        let rows = part(tables, title);
        let first = rows.iter().position(|it| figures_of(it, "floor").is_some());
        let first = first.expect("a floor");
        assert!(figures_of(rows[first + 1], "private words").is_some());
        assert!(rows[first - 1].starts_with('═'), "{title}");
    }
}

/// The machine decides which numbers those are; `Crowding` has its own tests.
#[test]
fn threads_without_a_core_each_are_marked_and_explained() {
    let (before, tables) = &*TEXT;
    let explained = THREADS.map(|n| {
        let notes = [format!("{n} threads on "), format!("{n} threads share ")];
        before
            .lines()
            .any(|line| notes.iter().any(|it| line.starts_with(it)))
    });
    for kind in ["scaling, allowed", "scaling, denied"] {
        let heads = heads(&part(tables, kind)).into_iter();
        assert!(
            heads.map(|head| head.ends_with('*')).eq(explained),
            "{before}{tables}"
        );
    }
    let legend = tables.contains("\n*      these threads do not have a core each");
    assert_eq!(legend, explained.contains(&true), "{before}{tables}");
}

#[test]
fn without_one_thread_there_is_no_ratio_to_it() {
    let text = bench("2,3", &[]);
    assert!(text.contains(ADVICE) && !TEXT.1.contains(ADVICE), "{text}");
    let part = part(&text, "scaling, allowed");
    for (_, label) in CONTESTANTS.iter().copied() {
        let figures = part.iter().find_map(|line| figures_of(line, label));
        let figures = figures.unwrap_or_else(|| panic!("no {label}: {text}"));
        assert_eq!((figures.len(), figures[1], figures[3]), (4, "-", "-"));
    }
    assert!(rows("2").iter().all(|row| row["vs_one_thread"].is_null()));
    assert!(!bench("1", &[]).contains("scaling"), "nothing scales");
}

#[test]
fn bad_arguments_are_refused_by_name() {
    // If a bad argument is accepted by mistake, the run must be short.
    for (name, values, more) in [
        ("--threads", "0 abc 1,,2 1025 -1", "--seconds=0.05"),
        ("--seconds", "0 -1 nan inf soon", "--threads=1"),
    ] {
        for value in values.split(' ') {
            let (status, said) = failure(&["bench", &format!("{name}={value}"), more]);
            assert_eq!(status, Some(2), "{name} {value}: {said}");
            let is_named = said.contains(name) && said.contains("must be a number");
            assert!(is_named, "{said}");
        }
    }
}
