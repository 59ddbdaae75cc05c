//! Files of snapshots.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// How many names to try for a temporary file. Processes that were stopped while they wrote a file
/// may have left some of these names in use.
const NAMES: u32 = 1000;

/// Replaces a file: writes a new file beside it, and renames the new file when it is complete.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<u64>,
) -> io::Result<u64> {
    let (temporary, mut file) = create_beside(path)?;
    let done = write(&mut file).and_then(|written| {
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, path)?;
        Ok(written)
    });
    if done.is_err() {
        // If the removal fails, nothing more can be done.
        let _ = fs::remove_file(&temporary);
    }
    #[cfg(unix)]
    if let (Ok(_), Some(folder)) = (&done, temporary.parent()) {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        // Make the new name survive a loss of power. If this fails, a loss of power leaves either
        // the old or the new file.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    done
}

/// Creates a temporary file in the same folder, which only the process's user can read.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name");
    let name = path.file_name().ok_or_else(no_name)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let process = std::process::id();
    let mut number = 0;
    loop {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(std::format!(".{process}-{number}.tmp"));
        let path = path.with_file_name(hidden);
        number += 1;
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES => {}
            opened => return Ok((path, opened?)),
        }
    }
}
