//! Reads the text of a policy from a file.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::problem::Problems;

/// The most bytes of a policy's text.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// Why a policy could not be read from a file.
///
/// ```
/// use tollgate_policy::{FileError, LivePolicy, Policy};
///
/// let error = LivePolicy::from_file("/no/limits.toml", Policy::builder()).unwrap_err();
/// assert!(error.to_string().starts_with("can't read /no/limits.toml: "));
/// match error {
///     FileError::Read { error, .. } => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
///     FileError::Policy(problems) => panic!("{problems}"),
///     _ => unreachable!(),
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The file can't be read. It is missing ([`NotFound`](io::ErrorKind::NotFound)), not UTF-8
    /// ([`InvalidData`](io::ErrorKind::InvalidData)), larger than 16 MiB
    /// ([`FileTooLarge`](io::ErrorKind::FileTooLarge)), empty
    /// ([`UnexpectedEof`](io::ErrorKind::UnexpectedEof)), or the system says why.
    ///
    /// An empty file is an error because a program that rewrites a file empties it first. A policy
    /// that is meant to have no rules is `rule = []`.
    #[non_exhaustive]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// The policy has errors. They name the file.
    Policy(Problems),
}

impl FileError {
    pub(crate) fn read(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        Self::Read { path, error }
    }

    pub(crate) fn policy(path: &Path, problems: Problems) -> Self {
        Self::Policy(problems.with_file(path.display().to_string()))
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, error } => write!(f, "can't read {}: {error}", path.display()),
            Self::Policy(problems) => problems.fmt(f),
        }
    }
}

impl Error for FileError {}

/// Reads the text of a policy from a file, as
/// [`LivePolicy::from_file`](crate::LivePolicy::from_file) does. It reads no more than a policy may
/// have, even from a file without an end.
///
/// ```
/// use tollgate_policy::file::read_text;
///
/// let error = read_text("/no/limits.toml".as_ref()).unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// ```
///
/// # Errors
///
/// The reason why the file can't be used: see [`FileError::Read`](crate::FileError::Read).
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let most = MAX_BYTES as u64 + 1;
    let large = file.metadata()?.len();
    if large < most {
        file.by_ref().take(most).read_to_end(&mut bytes)?;
    }
    if large >= most || bytes.len() > MAX_BYTES {
        // A file of a device has no length.
        let size = match large {
            size if size < most => format!("more than {MAX_BYTES}"),
            size => size.to_string(),
        };
        let message = format!("the file has {size} bytes, but may have at most 16 MiB");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("it is not text: byte {at} is not UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })?;
    match text.trim().is_empty() {
        true => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file is empty",
        )),
        false => Ok(text),
    }
}
