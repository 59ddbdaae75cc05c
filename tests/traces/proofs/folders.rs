//! The runner accepts any folder, with plain or gzipped files, and lists unknown sources.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tollgate_replay::{Report, run_folder};

use super::{cuts, sources};

/// Creates a folder for this test with only these files.
fn folder(name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("traces-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    for (file, text) in files {
        fs::write(folder.join(file), text).expect("a file");
    }
    folder
}

fn run(name: &str, files: &[(&str, &[u8])]) -> Report {
    run_folder(&folder(name, files), sources::all()).expect("a folder")
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

/// One trace of 280 ops, as text.
fn trace() -> String {
    let cuts = cuts("rust_governor_gcra.jsonl.gz");
    cuts[0].0.join("\n") + "\n"
}

#[test]
fn plain_and_gzipped_files_are_run_and_others_are_ignored() {
    let text = trace() + &trace();
    let files: [(_, &[u8]); 3] = [
        ("a.jsonl", text.as_bytes()),
        ("b.jsonl.gz", &packed(&text)),
        ("README.md", b"no trace"),
    ];
    let report = run("plain", &files);
    assert_eq!(report.failures(), []);
    let expected = ["a.jsonl", "b.jsonl.gz"]
        .map(|file| format!("{file}: 2 traces, 560 operations, 2240 answers compared\n"));
    let total = "total: 4 traces, 1120 operations compared\n";
    assert_eq!(report.to_string(), expected.concat() + total);
}

#[test]
fn an_unknown_source_is_listed_as_not_covered() {
    let unknown = trace().replace("governor", "another");
    let both = unknown.clone() + &trace();
    let files: [(_, &[u8]); 2] = [
        ("a.jsonl", unknown.as_bytes()),
        ("b.jsonl", both.as_bytes()),
    ];
    let report = run("unknown", &files);
    assert_eq!(report.failures(), []);
    let listed = "not covered: another 0.10.4 (gcra), 1 traces\n";
    let covered = "b.jsonl: 1 traces, 280 operations, 1120 answers compared\n";
    assert_eq!(report.files[0].to_string(), format!("a.jsonl: {listed}"));
    let expected = format!("{covered}b.jsonl: {listed}");
    assert_eq!(report.files[1].to_string(), expected);
}

#[test]
fn a_folder_without_traces_is_an_error() {
    let folder = folder("empty", &[]);
    let error = run_folder(&folder, sources::all()).expect_err("nothing to run");
    assert!(error.to_string().contains("no .jsonl and no .jsonl.gz in "));
    assert!(run_folder(&folder.join("missing"), sources::all()).is_err());
}

#[test]
fn a_file_that_can_not_be_unzipped_fails_and_the_others_are_run() {
    let whole = packed(&trace());
    let report = run(
        "damaged",
        &[
            ("a.jsonl.gz", &whole[..whole.len() / 2]),
            ("b.jsonl.gz", &whole),
        ],
    );
    let [failure] = &report.failures()[..] else {
        panic!("{report}");
    };
    let failure = failure.to_string();
    assert!(
        failure.starts_with("a.jsonl.gz, trace \"\", op 0: can't be read: "),
        "{failure}"
    );
    assert_eq!(report.files[1].ops, 280);
}
