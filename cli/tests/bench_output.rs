//! `tollgate bench` prints what it says it prints: JSON of one shape whose figures agree with each
//! other, a table for people, and an error that names what was wrong. Nothing here looks at how
//! fast anything is.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let command = command.arg("bench").args(arguments);
    command.output().expect("the program runs")
}

/// Prints what was said if it failed.
fn out_of(arguments: &[&str]) -> String {
    let output = bench(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert_eq!(said, "", "no progress where there is no terminal");
    String::from_utf8(output.stdout).expect("text")
}

fn figure(row: &Value, key: &str) -> f64 {
    let figure = row[key].as_f64();
    let figure = figure.unwrap_or_else(|| panic!("{key} is no number in {row}"));
    assert!(figure > 0.0, "{key} in {row}");
    figure
}

/// Figures are rounded to four places, so what follows from two of them is off by more if they are
/// small.
fn assert_follows(figure: f64, from: f64, row: &Value) {
    let off = (figure - from).abs();
    assert!(off <= 0.001 + from * 0.001, "{figure}, not {from}: {row}");
}

fn find<'v>(rows: &'v [Value], name: &str, threads: u64) -> &'v Value {
    let mut found = rows
        .iter()
        .filter(|row| row["name"] == name && row["threads"] == threads);
    let row = found.next();
    let row = row.unwrap_or_else(|| panic!("no row for {name} with {threads} threads"));
    assert_eq!(found.next(), None, "{name} twice");
    row
}

/// What is measured with each source of time, as it is called in the JSON and in the tables.
const CONTESTANTS: [(&str, &str); 19] = [
    ("floor", "floor"),
    ("private", "private words"),
    ("tollgate_system", "token bucket, system"),
    ("tollgate_coarse", "token bucket, coarse"),
    ("tollgate_tick", "token bucket, given tick"),
    ("sharded_system", "sharded, system"),
    ("sharded_tick", "sharded, given tick"),
    ("lease_system", "lease of 64, system"),
    ("lease_coarse", "lease of 64, coarse"),
    ("slots_system", "60 slots, system"),
    ("slots_tick", "60 slots, given tick"),
    ("log_system", "log of 1000, system"),
    ("log_tick", "log of 1000, given tick"),
    ("std_mutex_system", "std mutex, system"),
    ("std_mutex_coarse", "std mutex, coarse"),
    ("std_mutex_tick", "std mutex, given tick"),
    ("parking_lot_system", "parking_lot, system"),
    ("parking_lot_coarse", "parking_lot, coarse"),
    ("parking_lot_tick", "parking_lot, given tick"),
];

#[test]
fn json_has_a_row_for_each_contestant_and_number_of_threads() {
    let text = out_of(&["--json", "--seconds", "0.05", "--threads", "2,1,2"]);
    let rows: Vec<Value> = serde_json::from_str(&text).expect("an array and nothing else");
    let keys = [
        "crowded",
        "mops",
        "name",
        "ns_per_op",
        "threads",
        "vs_floor",
        "vs_mutex",
        "vs_one_thread",
    ];
    for row in &rows {
        let row = row.as_object().expect("an object");
        let found: BTreeSet<_> = row.keys().map(String::as_str).collect();
        assert_eq!(found, BTreeSet::from(keys));
    }
    // Both kinds and both numbers of threads.
    assert_eq!(rows.len(), 2 * 2 * CONTESTANTS.len());
    for threads in [1, 2] {
        for kind in ["allowed", "denied"] {
            let floor = find(&rows, &format!("floor_{kind}"), threads);
            for (name, _) in CONTESTANTS {
                let row = find(&rows, &format!("{name}_{kind}"), threads);
                let source = match name.rsplit_once('_') {
                    Some((_, source)) => source,
                    // The floors are beside the mutex with the system's clock.
                    None => "system",
                };
                let mutex = find(&rows, &format!("std_mutex_{source}_{kind}"), threads);
                check(row, floor, mutex);
                let one = find(&rows, &format!("{name}_{kind}"), 1);
                let times = figure(row, "mops") / figure(one, "mops");
                assert_follows(figure(row, "vs_one_thread"), times, row);
                let crowded = row["crowded"].as_bool().expect("yes or no");
                assert!(!crowded || threads > 1, "{row}");
                assert_eq!(row["crowded"], floor["crowded"], "{row}");
            }
        }
    }
}

/// The figures of a row follow from its own cost, the floor's and the mutex's.
fn check(row: &Value, floor: &Value, mutex: &Value) {
    let ns = figure(row, "ns_per_op");
    let threads = figure(row, "threads");
    assert_follows(figure(row, "mops"), threads * 1000.0 / ns, row);
    assert_follows(
        figure(row, "vs_floor"),
        ns / figure(floor, "ns_per_op"),
        row,
    );
    assert_follows(
        figure(row, "vs_mutex"),
        figure(mutex, "ns_per_op") / ns,
        row,
    );
}

#[test]
fn the_table_names_the_machine_and_has_a_part_for_each_number_of_threads() {
    let text = out_of(&["--seconds", "0.05", "--threads", "1,3"]);
    let (head, tables) = text.split_once("\n\n").expect("a head and tables");
    assert!(
        head.contains(concat!("tollgate ", env!("CARGO_PKG_VERSION"))),
        "{head}"
    );
    assert!(head.contains("core") && head.contains("rustc"), "{head}");
    assert!(
        tables.contains("1 thread\n") && tables.contains("3 threads on one limiter\n"),
        "{text}"
    );
    for (_, label) in CONTESTANTS {
        // In each number's own table, and in the two of the scaling.
        let rows = tables
            .lines()
            .filter(|line| figures_of(line, label).is_some());
        assert_eq!(rows.count(), 2 + 2, "{label}:\n{text}");
    }
    assert!(
        !text.contains('\u{1b}'),
        "no colours where there is no terminal: {text}"
    );
    let wide = tables.lines().map(|line| line.chars().count()).max();
    assert!(
        wide <= Some(80),
        "{wide:?} columns do not fit a terminal:\n{text}"
    );
}

/// The figures of a row of a table, if it is this contestant's.
fn figures_of<'t>(line: &'t str, label: &str) -> Option<Vec<&'t str>> {
    let figures = line.strip_prefix(label)?;
    let figures: Vec<_> = figures.split_whitespace().collect();
    let all = figures
        .iter()
        .all(|figure| *figure == "-" || figure.parse::<f64>().is_ok());
    (all && !figures.is_empty()).then_some(figures)
}

/// The lines of the tables with this title, up to an empty line.
fn part<'t>(text: &'t str, title: &str) -> Vec<&'t str> {
    let (_, part) = text
        .split_once(&format!("\n{title}\n"))
        .unwrap_or_else(|| panic!("no {title}: {text}"));
    part.lines().take_while(|line| !line.is_empty()).collect()
}

#[test]
fn the_scaling_has_two_columns_for_each_number_of_threads() {
    let threads = ["1", "2", "3", "4", "5"];
    let text = out_of(&["--seconds", "0.05", "--threads", &threads.join(",")]);
    for kind in ["scaling, allowed", "scaling, denied"] {
        let part = part(&text, kind);
        let heads = part.iter().filter(|line| line.starts_with("threads"));
        let heads = heads.flat_map(|line| line.split_whitespace().skip(1));
        let heads: Vec<_> = heads.map(|head| head.trim_end_matches('*')).collect();
        assert_eq!(heads, threads, "{kind}");
        for (_, label) in CONTESTANTS {
            let rows = part.iter().filter_map(|line| figures_of(line, label));
            let figures: Vec<f64> = rows
                .flatten()
                .map(|figure| figure.parse().expect("a number"))
                .collect();
            assert_eq!(figures.len(), 2 * threads.len(), "{label} in {kind}");
            assert_eq!(figures[1], 1.0, "{label}: one thread to itself");
            assert!(figures.iter().all(|&figure| figure >= 0.0), "{label}");
        }
    }
}

#[test]
fn the_machines_own_contention_stands_before_all_tables() {
    let text = out_of(&["--seconds", "0.05", "--threads", "1,2,3"]);
    let (before, _) = text.split_once("\n1 thread\n").expect("a table");
    for threads in [2, 3] {
        let start = format!("{threads} threads: ");
        let line = before.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("nothing on {threads} threads: {before}"));
        assert!(line.contains(" ns on one word, "), "{line}");
        assert!(line.contains(" on a word each ("), "{line}");
        assert!(line.ends_with(" times one thread)"), "{line}");
    }
    // Also in each table: the floor first, and then its like on private words.
    for title in ["1 thread", "2 threads on one limiter", "scaling, denied"] {
        let rows = part(&text, title);
        let first = rows
            .iter()
            .position(|line| figures_of(line, "floor").is_some());
        let first = first.expect("a floor");
        assert!(
            figures_of(rows[first + 1], "private words").is_some(),
            "{title}"
        );
        assert!(rows[first - 1].starts_with('═'), "{title}");
    }
}

#[test]
fn more_threads_than_cores_are_marked() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores + 1;
    if threads > 64 {
        return; // more than can be asked for
    }
    let text = out_of(&["--seconds", "0.05", "--threads", &format!("1,{threads}")]);
    let plural = if cores == 1 { "" } else { "s" };
    let note = format!("\n{threads} threads on {cores} core{plural} take turns");
    assert!(text.contains(&note), "{note}: {text}");
    for kind in ["scaling, allowed", "scaling, denied"] {
        let head = part(&text, kind)[1];
        assert!(head.contains(&format!(" {threads}*")), "{head}");
        assert!(!head.contains(" 1*"), "{head}");
    }
    assert!(
        text.contains("\n*      these threads do not have a core each"),
        "{text}"
    );
}

#[test]
fn without_one_thread_there_is_no_ratio_to_it() {
    let text = out_of(&["--seconds", "0.05", "--threads", "2,3"]);
    assert!(
        text.contains("one thread was not measured, add it to --threads"),
        "{text}"
    );
    for (_, label) in CONTESTANTS {
        let part = part(&text, "scaling, allowed");
        let figures = part.iter().find_map(|line| figures_of(line, label));
        let figures = figures.unwrap_or_else(|| panic!("no {label}: {text}"));
        assert_eq!(
            (figures.len(), figures[1], figures[3]),
            (4, "-", "-"),
            "{label}"
        );
    }
    let text = out_of(&["--json", "--seconds", "0.05", "--threads", "2"]);
    let rows: Vec<Value> = serde_json::from_str(&text).expect("an array and nothing else");
    assert!(
        rows.iter().all(|row| row["vs_one_thread"].is_null()),
        "{text}"
    );
    let text = out_of(&["--seconds", "0.05", "--threads", "1"]);
    assert!(!text.contains("scaling"), "nothing scales: {text}");
}

#[test]
fn bad_arguments_are_refused_by_name() {
    for (name, value) in [
        ("--threads", "0"),
        ("--threads", "abc"),
        ("--threads", "1,,2"),
        ("--threads", "65"),
        ("--threads", "-1"),
        ("--seconds", "0"),
        ("--seconds", "-1"),
        ("--seconds", "nan"),
        ("--seconds", "inf"),
        ("--seconds", "soon"),
    ] {
        let given = format!("{name}={value}");
        // What is accepted by mistake is not to run for long.
        let output = match name {
            "--threads" => bench(&[&given, "--seconds=0.05"]),
            _ => bench(&[&given, "--threads=1"]),
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name} {value}: {said}");
        assert!(
            said.contains(name) && said.contains("must be a number"),
            "{said}"
        );
        assert!(output.stdout.is_empty(), "{name} {value}");
    }
}
