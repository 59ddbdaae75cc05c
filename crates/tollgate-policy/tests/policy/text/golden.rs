//! Each file of the folder `bad`, and the text beside it with all that is wrong with it. To write
//! the texts anew, run the test with `TOLLGATE_RECORD=1`.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate_policy::file::PolicyFile;

/// Returns the files of a folder, in order.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let is_toml = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml");
    let mut files: Vec<PathBuf> = paths.filter(is_toml).collect();
    files.sort();
    files
}

#[test]
fn each_bad_file_gives_all_its_errors() {
    let files = files("tests/policy/text/bad");
    assert!(files.len() >= 30, "{} files", files.len());
    let mut different = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("it is text");
        let name = path.file_name().expect("a file").to_string_lossy();
        let problems = PolicyFile::from_toml(&text).expect_err(&name);
        assert!(
            problems.iter().all(|problem| problem.position.is_some()),
            "{problems}"
        );
        let got = format!("{}\n", problems.with_file(name));
        let golden = path.with_extension("txt");
        if std::env::var_os("TOLLGATE_RECORD").is_some() {
            fs::write(&golden, &got).expect("it can be written");
        } else if fs::read_to_string(&golden).unwrap_or_default() != got {
            different.push(got);
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
