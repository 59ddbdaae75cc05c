//! One process alone has a state's file.

use std::fs::File;
use std::io;
use std::path::Path;

use super::{beside, create};

/// The lock of a state's file, for as long as it lives. It is on a file beside the state, because
/// each save puts another file in the place of the state. The system drops it with the process.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Locks a state's file. `None` if another process has it.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = match create(&beside(path, ".lock")) {
            Ok(file) => file,
            // There is no such folder, or it can't be written: so no process saves the state.
            Err(_) => return Some(Self { _file: None }),
        };
        match try_lock(&file) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            // Not every file system has locks.
            Ok(()) | Err(_) => Some(Self { _file: Some(file) }),
        }
    }
}

#[cfg(unix)]
fn try_lock(file: &File) -> io::Result<()> {
    use rustix::fs::{FlockOperation, flock};

    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from)
}

#[cfg(not(unix))]
const fn try_lock(_: &File) -> io::Result<()> {
    Ok(())
}
