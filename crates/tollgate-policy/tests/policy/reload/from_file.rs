//! A policy that is read from a file, and reloaded from it by a call.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tollgate::ManualClock;
use tollgate_policy::{FileError, LivePolicy, Policy, RuleState};

use crate::folder::folder;
use crate::reload::{left, rule};

fn limit(limit: &str) -> String {
    rule("a", &format!("key = 'user'\nlimit = '{limit}'"))
}

/// Returns a policy that was read from a file of 10 permits, and the file. One permit is taken.
fn from_file(name: &str) -> (LivePolicy<ManualClock>, PathBuf) {
    let path = folder(name).join("limits.toml");
    fs::write(&path, limit("10/h")).expect("written");
    let builder = Policy::builder().clock(ManualClock::new());
    let live = LivePolicy::from_file(&path, builder).expect("a policy");
    assert_eq!(left(&live, "ann"), Some(9));
    (live, path)
}

/// Reloads the file, which must be unreadable for this reason. Nothing may change.
#[track_caller]
fn assert_unreadable(live: &LivePolicy<ManualClock>, path: &Path, kind: ErrorKind) {
    let before = left(live, "ann").expect("permits");
    let failed = live.reload_if_changed(path).expect("a change");
    let error = failed.expect_err("a file that can't be read");
    let start = format!("can't read {}: ", path.display());
    assert!(error.to_string().starts_with(&start), "{error}");
    match error {
        FileError::Read {
            path: at, error, ..
        } => assert_eq!((&*at, error.kind()), (path, kind)),
        other => panic!("{other}"),
    }
    assert!(live.reload_if_changed(path).is_none(), "reported twice");
    assert_eq!(left(live, "ann"), Some(before - 1));
}

#[test]
fn only_a_file_that_changed_is_reloaded() {
    let (live, path) = from_file("changed");
    assert!(live.reload_if_changed(&path).is_none());
    // Another file with the same text.
    fs::remove_file(&path).expect("removed");
    fs::write(&path, limit("10/h")).expect("written");
    assert!(live.reload_if_changed(&path).is_none());

    fs::write(&path, limit("5/h")).expect("written");
    let reloaded = live.reload_if_changed(&path).expect("a change");
    let state = reloaded.expect("a policy").state("a");
    assert_eq!(state, Some(RuleState::Migrated));
    assert!(live.reload_if_changed(&path).is_none());
    assert_eq!(left(&live, "ann"), Some(3));
}

#[test]
fn a_policy_of_another_origin_is_reloaded_from_the_first_file_that_is_read() {
    let path = folder("origin").join("limits.toml");
    fs::write(&path, limit("10/h")).expect("written");
    let live = LivePolicy::new(Policy::from_toml(&limit("10/h")).expect("a policy"));
    let reloaded = live.reload_if_changed(&path).expect("a first time");
    let state = reloaded.expect("a policy").state("a");
    assert_eq!(state, Some(RuleState::Kept));
    assert!(live.reload_if_changed(&path).is_none());
}

#[test]
fn an_error_is_returned_once_and_the_same_text_is_good_again_afterwards() {
    let (live, path) = from_file("half");
    let whole = limit("5/h");
    let half = whole.strip_suffix("h'\n").expect("the end");
    fs::write(&path, half).expect("written");
    let problems = match live.reload_if_changed(&path) {
        Some(Err(FileError::Policy(problems))) => problems,
        other => panic!("{other:?}"),
    };
    assert!(problems.has_errors());
    let file = path.display().to_string();
    assert_eq!(problems.file(), Some(file.as_str()));
    assert!(live.reload_if_changed(&path).is_none());
    assert_eq!(left(&live, "ann"), Some(8));

    // What was there before is a change too: it ends the error.
    fs::write(&path, limit("10/h")).expect("written");
    let reloaded = live.reload_if_changed(&path).expect("a change");
    let state = reloaded.expect("a policy").state("a");
    assert_eq!(state, Some(RuleState::Kept));
    assert_eq!(left(&live, "ann"), Some(7));
}

#[test]
fn a_call_reloads_a_file_that_did_not_change_and_returns_its_errors_again() {
    let (live, path) = from_file("call");
    let reloaded = live.reload_file(&path).expect("a policy");
    assert_eq!(reloaded.state("a"), Some(RuleState::Kept));
    fs::write(&path, limit("5/fortnight")).expect("written");
    for _ in 0..2 {
        let error = live.reload_file(&path).expect_err("a unit that is unknown");
        assert!(error.to_string().contains("fortnight"), "{error}");
    }
    // The call has read it, so there is no change.
    assert!(live.reload_if_changed(&path).is_none());
    assert_eq!(left(&live, "ann"), Some(8));
}

#[test]
fn a_file_that_is_gone_changes_nothing() {
    let (live, path) = from_file("gone");
    fs::remove_file(&path).expect("removed");
    assert_unreadable(&live, &path, ErrorKind::NotFound);
}

#[test]
fn an_empty_file_changes_nothing() {
    let (live, path) = from_file("empty");
    fs::write(&path, "").expect("written");
    assert_unreadable(&live, &path, ErrorKind::UnexpectedEof);
    fs::write(&path, "# cut").expect("written");
    let error = live.reload_if_changed(&path).expect("a change");
    let error = error.expect_err("no rules").to_string();
    let start = format!("{}: error: rule is missing, and so are", path.display());
    assert!(error.starts_with(&start), "{error}");
    assert!(live.reload_if_changed(&path).is_none());
    assert_eq!(left(&live, "ann"), Some(6));

    fs::write(&path, "rule = []").expect("written");
    let reloaded = live.reload_if_changed(&path).expect("a change");
    let state = reloaded.expect("a policy without rules").state("a");
    assert_eq!(state, Some(RuleState::Removed));
}

#[test]
fn warnings_name_the_file() {
    let (live, path) = from_file("warnings");
    fs::write(&path, limit("10/h") + "when = { pth = '/a' }").expect("written");
    for reloaded in [
        live.reload_if_changed(&path).expect("a change"),
        live.reload_file(&path),
    ] {
        let warnings = reloaded.expect("a policy").warnings().to_string();
        let start = format!("{}:5:8: warning: rule \"a\": when.pth", path.display());
        assert!(warnings.starts_with(&start), "{warnings}");
    }
}

#[test]
fn a_file_that_is_not_utf_8_changes_nothing() {
    let (live, path) = from_file("utf-8");
    fs::write(&path, b"# \xe9\n").expect("written");
    assert_unreadable(&live, &path, ErrorKind::InvalidData);
}

#[test]
fn a_file_that_is_too_large_is_not_read_to_its_end() {
    let (live, path) = from_file("large");
    // It takes no place on the disk. Reading it whole would take a terabyte of memory.
    let file = File::create(&path).expect("a file");
    file.set_len(1 << 40).expect("a sparse file");
    assert_unreadable(&live, &path, ErrorKind::FileTooLarge);
    fs::remove_file(&path).expect("removed");
}

#[test]
fn a_folder_is_not_a_policy() {
    let path = folder("not-a-file");
    let error = LivePolicy::from_file(&path, Policy::builder()).expect_err("a folder");
    assert!(matches!(error, FileError::Read { .. }), "{error}");
}

#[test]
fn the_end_of_the_name_says_the_format() {
    let json = |n| format!(r#"{{ "rule": [{{ "name": "a", "key": "user", "limit": "{n}/h" }}] }}"#);
    let yaml = |n| format!("rule:\n- name: a\n  key: user\n  limit: {n}/h\n");
    let toml = |n| limit(&format!("{n}/h"));
    let formats: [(&str, &dyn Fn(u32) -> String); 6] = [
        ("a.json", &json),
        ("a.JSON", &json),
        ("a.toml", &toml),
        ("a.conf", &toml),
        ("a.yaml", &yaml),
        ("a.yml", &yaml),
    ];
    let folder = folder("format");
    for (name, text) in formats {
        let path = folder.join(name);
        fs::write(&path, text(10)).expect("written");
        let read = LivePolicy::from_file(&path, Policy::builder().clock(ManualClock::new()));
        if name.starts_with("a.y") && !cfg!(feature = "yaml") {
            let error = read.expect_err("YAML").to_string();
            let why = ":1:1: error: the policy is YAML, which needs the feature `yaml` of \
                       tollgate-policy";
            assert_eq!(error, format!("{}{why}", path.display()));
            continue;
        }
        let live = read.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(left(&live, "ann"), Some(9));
        fs::write(&path, text(5)).expect("written");
        let reloaded = live.reload_if_changed(&path).expect("a change");
        let state = reloaded.expect("a policy").state("a");
        assert_eq!(state, Some(RuleState::Migrated));
        fs::write(&path, "apply: {").expect("written");
        let error = live.reload_file(&path).expect_err("no policy").to_string();
        assert!(
            error.starts_with(&format!("{}:1:", path.display())),
            "{error}"
        );
        assert_eq!(left(&live, "ann"), Some(3));
    }
}
