//! How many connections the process has file descriptors for.

/// Descriptors for other things: the operators' connections, stores, files, and those of a program
/// that runs the service beside others.
const RESERVE: usize = 320;

/// Returns how many connections there can be, of those that are wanted.
pub(crate) fn cap(wanted: usize) -> usize {
    let Some(files) = limit() else {
        return wanted;
    };
    let most = fit(files);
    if most < wanted {
        tracing::warn!(
            wanted,
            most,
            files,
            "the limit of open files allows fewer connections"
        );
    }
    wanted.min(most)
}

/// Leaves a reserve, or half of them if they are few.
fn fit(files: usize) -> usize {
    files.saturating_sub(RESERVE).max(files / 2)
}

/// Returns how many files the process may have open.
#[cfg(unix)]
fn limit() -> Option<usize> {
    use rustix::process::{Resource, getrlimit};

    let files = getrlimit(Resource::Nofile).current?;
    usize::try_from(files).ok()
}

#[cfg(not(unix))]
const fn limit() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn a_reserve_stays_free() {
        assert_eq!(fit(1024), 704);
        assert_eq!(fit(600), 300);
        assert_eq!(fit(1), 0);
        assert_eq!(fit(usize::MAX), usize::MAX - 320);
    }
}
