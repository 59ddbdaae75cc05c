//! Files of snapshots.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// How many names to try for a temporary file. Processes that were stopped while they wrote a file
/// may have left some of these names in use.
const NAMES: u32 = 1000;

/// A file that is removed on drop, unless it has been renamed (`is_needed` is false then).
struct Temporary {
    path: PathBuf,
    is_needed: bool,
}

impl Temporary {
    /// Creates a file in the same folder.
    fn beside(path: &Path) -> io::Result<(Self, File)> {
        let Some(name) = path.file_name() else {
            let error = io::ErrorKind::InvalidInput;
            return Err(io::Error::new(error, "the path has no file name"));
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let process = std::process::id();
        let mut error = io::Error::from(io::ErrorKind::AlreadyExists);
        for number in 0..NAMES {
            let mut own = OsString::from(".");
            own.push(name);
            own.push(std::format!(".{process}-{number}.tmp"));
            let path = path.with_file_name(own);
            match options.open(&path) {
                Ok(file) => {
                    let is_needed = true;
                    return Ok((Self { path, is_needed }, file));
                }
                Err(other) if other.kind() != io::ErrorKind::AlreadyExists => return Err(other),
                Err(exists) => error = exists,
            }
        }
        Err(error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.is_needed {
            // If the removal fails, nothing more can be done.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Replaces a file: writes a new file beside it, and renames the new file when it is complete.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<u64>,
) -> io::Result<u64> {
    let (mut temporary, mut file) = Temporary::beside(path)?;
    let written = write(&mut file)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary.path, path)?;
    temporary.is_needed = false;
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        // Make the new name survive a loss of power. If this fails, a loss of power leaves either
        // the old or the new file.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(written)
}
