//! Any folder can be run, plain or packed, and a source that nobody knows is listed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Cut, recorded};
use crate::traces_support::sources;
use tollgate_replay::run_folder;

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("traces-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn plain_and_packed_files_are_run_and_others_left_alone() {
    let folder = folder("plain");
    let text = recorded("rust_governor_gcra");
    fs::write(folder.join("a.jsonl"), &text).expect("a file");
    fs::write(folder.join("b.jsonl.gz"), packed(&text)).expect("a file");
    fs::write(folder.join("README.md"), "no trace").expect("a file");
    let report = run_folder(&folder, sources::all()).expect("a folder");
    assert_eq!(report.failures(), []);
    let files = report.files.iter();
    let files: Vec<_> = files
        .map(|f| (f.file.as_str(), f.covered_traces(), f.ops))
        .collect();
    assert_eq!(files, [("a.jsonl", 13, 3640), ("b.jsonl.gz", 13, 3640)]);
    let printed = report.to_string();
    assert!(
        printed.contains("a.jsonl: 13 traces, 3640 operations"),
        "{printed}"
    );
    assert!(
        printed.contains("in all: 26 traces, 7280 operations"),
        "{printed}"
    );
}

#[test]
fn a_source_that_nobody_knows_is_listed_as_not_covered() {
    let folder = folder("unknown");
    let known = Cut::nth("rust_governor_gcra", 0);
    let mut unknown = known.clone();
    unknown.header["source"] = "nobody 1.0".into();
    fs::write(folder.join("a.jsonl"), unknown.text()).expect("a file");
    fs::write(folder.join("b.jsonl"), unknown.text() + &known.text()).expect("a file");
    let report = run_folder(&folder, sources::all()).expect("a folder");
    assert_eq!(report.failures(), []);
    let [a, b] = &report.files[..] else {
        panic!("{report}");
    };
    assert_eq!((a.traces, a.covered_traces(), a.ops), (1, 0, 0));
    assert_eq!(
        a.to_string(),
        "a.jsonl: not covered: nobody 1.0 (gcra), 1 traces\n"
    );
    assert_eq!((b.traces, b.covered_traces(), b.ops), (2, 1, 280));
    assert!(
        b.to_string()
            .contains("b.jsonl: not covered: nobody 1.0 (gcra), 1 traces\n")
    );
}

#[test]
fn a_folder_without_traces_is_an_error() {
    let folder = folder("empty");
    let error = run_folder(&folder, sources::all()).expect_err("nothing to run");
    assert!(error.to_string().contains("no .jsonl and no .jsonl.gz in "));
    assert!(run_folder(&folder.join("missing"), sources::all()).is_err());
}

#[test]
fn a_file_that_can_not_be_unpacked_fails_and_the_others_are_run() {
    let folder = folder("damaged");
    let text = Cut::nth("rust_governor_gcra", 0).text();
    let whole = packed(&text);
    fs::write(folder.join("a.jsonl.gz"), &whole[..whole.len() / 2]).expect("a file");
    fs::write(folder.join("b.jsonl.gz"), whole).expect("a file");
    let report = run_folder(&folder, sources::all()).expect("a folder");
    let failures = report.failures();
    assert_eq!(failures.len(), 1);
    assert!(
        failures[0]
            .to_string()
            .starts_with("a.jsonl.gz, trace \"\", op 0: can't be read: ")
    );
    assert_eq!(report.files[1].ops, 280);
}
