//! Folders for tests that write files.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns an empty folder for a test with this name.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("policy-{name}"));
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => fs::create_dir_all(&folder).expect("a folder"),
    }
    folder
}
