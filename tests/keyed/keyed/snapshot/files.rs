//! A snapshot file is the old one or the new one, and never a partial one.

use std::fs;
use std::path::PathBuf;

use tollgate::error::RestoreError;

use super::{next_table, table, ticks};
use crate::support::*;

/// A folder for this test, which is deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("tollgate-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        Vec::from_iter(names.map(|name| name.to_string_lossy().into_owned()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_snapshot_file_is_written_and_restored() {
    let folder = Folder::new("round");
    let path = folder.0.join("limits");
    let limiter = table(bucket("1/365d burst 9"), ticks(1.0));
    // Leftovers of a process that was stopped block no file.
    let remains = format!(".limits.{}-0.tmp", std::process::id());
    fs::write(folder.0.join(&remains), b"a part").expect("room");
    for key in ["alice", "bob"] {
        let _ = limiter.try_acquire_n(key, 4).expect("fresh");
        limiter.snapshot_to(&path).expect("room");
    }
    fs::remove_file(folder.0.join(remains)).expect("it is still there");
    assert_eq!(folder.names(), ["limits"]);
    let mut next = next_table(bucket("1/365d burst 9"), ticks(0.0));
    assert_eq!(next.restore_from(&path).expect("whole").keys, 2);
    assert_eq!(next.key("bob").available(), 5);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it is private");
    }
}

#[test]
fn a_missing_or_overlong_file_changes_nothing() {
    let folder = Folder::new("long");
    let path = folder.0.join("limits");
    let mut limiter = table(bucket("1/365d burst 9"), ticks(1.0));
    let _ = limiter.try_acquire("alice").expect("fresh");
    assert!(matches!(
        limiter.restore_from(&path),
        Err(RestoreError::Io(_))
    ));
    limiter.snapshot_to(&path).expect("room");
    let _ = limiter.try_acquire("alice").expect("fresh");
    let mut bytes = fs::read(&path).expect("a file");
    bytes.push(0);
    fs::write(&path, bytes).expect("room");
    let restored = limiter.restore_from(&path);
    assert!(matches!(restored, Err(RestoreError::TooLong)));
    assert_eq!(limiter.key("alice").available(), 7);
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let folder = Folder::new("behind");
    let limiter = table(bucket("1/s"), ticks(1.0));
    // A folder can't be replaced by a file.
    let path = folder.0.join("folder");
    fs::create_dir(&path).expect("a folder");
    fs::write(path.join("full"), b"").expect("room");
    assert!(limiter.snapshot_to(&path).is_err());
    assert_eq!(folder.names(), ["folder"]);
    for path in [&folder.0.join("not there/limits"), &"".into(), &"..".into()] {
        assert!(limiter.snapshot_to(path).is_err());
    }
}
