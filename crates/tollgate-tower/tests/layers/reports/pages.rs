//! docs/PRODUCTION.md names metrics that there are, and docs/SECURITY.md tests that there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tollgate::stats::Metric;

/// The words of a text that have letters and underscores only.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .collect()
}

#[test]
fn each_metric_of_the_page_is_written() {
    let names = Metric::ALL.iter();
    let mut written: String = names
        .map(|it| format!("tollgate_{}\n", it.name()))
        .collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["tollgate-tower/src/report", "tollgate-redis/src/outage"] {
        sources(crates.join(name), &mut written);
    }
    let known = words(&written);
    let page = include_str!("../../../docs/PRODUCTION.md");
    let crates = ["tollgate_tower", "tollgate_policy"];
    let is_metric = |word: &&str| word.starts_with("tollgate_") && !crates.contains(word);
    // Prometheus adds an ending to the name of a histogram.
    let named = words(page).into_iter().filter(is_metric);
    let named: Vec<_> = named.map(|name| name.trim_end_matches("_bucket")).collect();
    assert!(named.len() >= 9, "{named:?}");
    let unknown: Vec<_> = named
        .iter()
        .filter(|name| !known.contains(**name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Adds the sources below a folder.
fn sources(folder: PathBuf, all: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            *all += &fs::read_to_string(path).expect("text");
        }
    }
}

#[test]
fn each_test_of_the_page_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = String::new();
    for entry in fs::read_dir(root.join("crates")).expect("the crates") {
        // A crate whose tests are all beside its code has no such folder.
        let tests = entry.expect("a crate").path().join("tests");
        if tests.is_dir() {
            sources(tests, &mut all);
        }
    }
    sources(root.join("cli/tests"), &mut all);
    let page = include_str!("../../../docs/SECURITY.md");
    let code = page.split('`').skip(1).step_by(2);
    let is_name = |code: &&str| code.matches('_').count() > 2 && words(code).len() == 1;
    let names: Vec<_> = code.filter(is_name).collect();
    assert!(names.len() > 30, "{names:?}");
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !all.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
