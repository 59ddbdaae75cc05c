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

const SOURCES: [&str; 3] = ["system", "coarse", "tick"];

#[test]
fn json_has_a_row_for_each_contestant_and_number_of_threads() {
    let text = out_of(&["--json", "--seconds", "0.05", "--threads", "2,1,2"]);
    let rows: Vec<Value> = serde_json::from_str(&text).expect("an array and nothing else");
    let keys = [
        "mops",
        "name",
        "ns_per_op",
        "threads",
        "vs_floor",
        "vs_mutex",
    ];
    for row in &rows {
        let row = row.as_object().expect("an object");
        let found: BTreeSet<_> = row.keys().map(String::as_str).collect();
        assert_eq!(found, BTreeSet::from(keys));
    }
    // Both kinds and both numbers of threads: the floor, and three contestants on three clocks.
    assert_eq!(rows.len(), 2 * 2 * (1 + 3 * 3));
    for threads in [1, 2] {
        for kind in ["allowed", "denied"] {
            let floor = find(&rows, &format!("floor_{kind}"), threads);
            check(
                floor,
                floor,
                find(&rows, &format!("std_mutex_system_{kind}"), threads),
            );
            for source in SOURCES {
                let mutex = find(&rows, &format!("std_mutex_{source}_{kind}"), threads);
                for name in ["tollgate", "std_mutex", "parking_lot"] {
                    let row = find(&rows, &format!("{name}_{source}_{kind}"), threads);
                    check(row, floor, mutex);
                }
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
        tables.contains("1 thread\n") && tables.contains("3 threads"),
        "{text}"
    );
    assert_eq!(tables.matches("allowed").count(), 2, "{text}");
    assert_eq!(tables.matches("token bucket, coarse").count(), 2, "{text}");
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
