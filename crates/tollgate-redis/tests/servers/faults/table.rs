//! The table of faults in docs/DISTRIBUTED.md names a test for each event, and has all tests of
//! faults.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The rows of the table: the cells of each.
fn rows(document: &str) -> Vec<Vec<&str>> {
    let (_, after) = document
        .split_once("## When something goes wrong")
        .expect("the section");
    let section = after.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect());
    // Without the names of the columns.
    cells.skip(1).collect()
}

/// Adds the names of the tests in a folder.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.file_name().is_some_and(|name| name != "table.rs") {
            let text = fs::read_to_string(&path).expect("text");
            let mut is_test = false;
            for line in text.lines() {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let function = line.trim_start_matches("async ").strip_prefix("fn ");
                if let Some((name, _)) = function.and_then(|text| text.split_once('(')) {
                    if is_test {
                        found.insert(name.to_owned());
                    }
                    is_test = false;
                }
            }
        }
    }
}

#[test]
fn each_fault_has_a_row_and_each_row_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/DISTRIBUTED.md")).expect("text");
    let (mut all, mut faults) = (BTreeSet::new(), BTreeSet::new());
    tests(&root.join("tests"), &mut all);
    tests(&root.join("tests/servers/faults"), &mut faults);
    let rows = rows(&document);
    assert!(rows.len() > 10 && faults.len() > 10, "{rows:?} {faults:?}");
    let mut named = BTreeSet::new();
    for row in rows {
        let [event, _, tests, ""] = row[..] else {
            panic!("{row:?} has an event, what is granted, and tests");
        };
        let tests: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{event} has no test");
        for test in tests {
            assert!(all.contains(test), "{event} names {test}, which is no test");
            named.insert(test.to_owned());
        }
    }
    let missing: Vec<_> = faults.difference(&named).collect();
    assert!(missing.is_empty(), "tests without a row: {missing:?}");
}
