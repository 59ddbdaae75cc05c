//! One process alone has a state's file.

use std::fs::File;
use std::io;
use std::path::Path;

use super::beside;

/// The lock of a state's file, for as long as it lives. It is on a file beside the state, because
/// each save puts another file in the place of the state. The system drops it with the process.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a state's file. `None` if another process has it. An error if its folder is not
    /// there, or can't be written: then the state can't be saved either.
    pub(super) fn of(path: &Path) -> io::Result<Option<Self>> {
        let file = open(&beside(path, ".lock"))?;
        match try_lock(&file) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // Not every file system has locks.
            Ok(()) | Err(_) => Ok(Some(Self { _file: file })),
        }
    }
}

/// Opens the lock's file, but not what a link there leads to.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;

        options.mode(0o600).custom_flags(NO_LINK);
    }
    options.open(path)
}

#[cfg(unix)]
const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

#[cfg(unix)]
fn try_lock(file: &File) -> io::Result<()> {
    use rustix::fs::{FlockOperation, flock};

    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from)
}

#[cfg(not(unix))]
const fn try_lock(_: &File) -> io::Result<()> {
    Ok(())
}
