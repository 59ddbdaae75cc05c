//! What the exit codes mean.

use std::process::ExitCode;

/// The exit code of a policy with errors.
pub(crate) const INVALID: u8 = 1;
/// The exit code of arguments that can't be used, and of files that can't be read.
pub(crate) const UNUSABLE: u8 = 2;

/// Says why a command can't do its work.
pub(crate) fn unusable(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(UNUSABLE)
}
