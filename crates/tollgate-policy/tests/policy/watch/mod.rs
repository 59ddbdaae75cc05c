//! A policy whose file is watched. A test waits for reports, never for time to pass: a poll is
//! never due unless the test is about polls.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tollgate_policy::{FileError, LivePolicy, Policy, Reloaded, RuleState, Watch};

use crate::folder::folder;

/// No test is slower, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);
const NEVER: Duration = Duration::MAX;

type Report = Result<Reloaded, FileError>;

fn limit(permits: u32) -> String {
    format!("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '{permits}/h'\n")
}

/// A policy, its file and the reports about it.
struct Watched {
    live: Arc<LivePolicy>,
    path: PathBuf,
    reports: Receiver<Report>,
    watch: Watch,
}

impl Watched {
    /// Writes a file of 10 permits to a path, and watches it. One permit is taken.
    #[track_caller]
    fn new(path: PathBuf) -> Self {
        fs::write(&path, limit(10)).expect("written");
        let live = LivePolicy::new(Policy::from_toml(&limit(10)).expect("a policy"));
        let watched = Self::with_policy(live, path, NEVER);
        // The policy is not from the file, so the first reading is reported. Only events can
        // announce what changes afterwards.
        let reloaded = watched.report().expect("a policy");
        assert_eq!(reloaded.state("a"), Some(RuleState::Kept));
        assert_eq!(watched.left(), Some(9));
        watched
    }

    fn with_policy(live: LivePolicy, path: PathBuf, poll: Duration) -> Self {
        let live = Arc::new(live);
        let (sender, reports) = mpsc::channel();
        let report = move |report| {
            // The test may have ended.
            let _ = sender.send(report);
        };
        let watch = live.watch(&path, poll, report).expect("a thread");
        Self {
            live,
            path,
            reports,
            watch,
        }
    }

    /// Returns how many permits there are after one more request.
    fn left(&self) -> Option<u64> {
        self.live.decide(&[("user", "ann")]).remaining()
    }

    #[track_caller]
    fn report(&self) -> Report {
        let report = self.reports.recv_timeout(DEADLINE);
        report.expect("a report before the deadline")
    }

    /// Waits until a policy was reloaded. Its limit must have changed.
    #[track_caller]
    fn reloaded(&self) {
        let reloaded = self.report().expect("a policy");
        assert_eq!(reloaded.state("a"), Some(RuleState::Migrated));
    }

    /// Waits until a policy was reloaded. The file may have been read while it was written.
    #[track_caller]
    fn reloaded_in_the_end(&self) {
        let reloaded = std::iter::repeat_with(|| self.report()).find_map(Result::ok);
        let state = reloaded.and_then(|it| it.state("a"));
        assert_eq!(state, Some(RuleState::Migrated));
    }
}

/// Replaces a file as editors do.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(&new, path).expect("renamed");
}

#[test]
fn a_file_that_is_replaced_by_a_rename_is_reloaded_each_time() {
    let watched = Watched::new(folder("watch-rename").join("limits.toml"));
    replace(&watched.path, &limit(5));
    watched.reloaded();
    assert_eq!(watched.left(), Some(3));
    // The first rename has replaced the file that was there when the watch began.
    replace(&watched.path, &limit(8));
    watched.reloaded();
    assert_eq!(watched.left(), Some(5));
}

#[test]
fn a_file_that_is_written_in_place_is_reloaded() {
    let watched = Watched::new(folder("watch-in-place").join("limits.toml"));
    fs::write(&watched.path, limit(5)).expect("written");
    watched.reloaded_in_the_end();
    assert_eq!(watched.left(), Some(3));
}

#[test]
fn a_half_written_file_changes_nothing_until_it_is_whole() {
    let watched = Watched::new(folder("watch-half").join("limits.toml"));
    let text = limit(5);
    let half = text.strip_suffix("h'\n").expect("the end");
    replace(&watched.path, half);
    let error = watched.report().expect_err("half a policy");
    assert!(matches!(error, FileError::Policy(_)), "{error}");
    assert_eq!(watched.left(), Some(8));
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&watched.path)
        .expect("opened");
    std::io::Write::write_all(&mut file, b"h'\n").expect("written");
    watched.reloaded();
    assert_eq!(watched.left(), Some(2));
}

#[test]
fn a_file_that_is_gone_changes_nothing_until_it_is_back() {
    let watched = Watched::new(folder("watch-gone").join("limits.toml"));
    fs::remove_file(&watched.path).expect("removed");
    let error = watched.report().expect_err("no file");
    assert!(matches!(error, FileError::Read { .. }), "{error}");
    assert_eq!(watched.left(), Some(8));
    replace(&watched.path, &limit(5));
    watched.reloaded();
    assert_eq!(watched.left(), Some(2));
}

/// As Kubernetes mounts a ConfigMap: `limits.toml` links to `..data/limits.toml`, and `..data` to a
/// folder of one version, which is replaced by a rename.
#[cfg(unix)]
#[test]
fn a_file_of_a_config_map_is_reloaded_each_time() {
    use std::os::unix::fs::symlink;

    let folder = folder("watch-config-map");
    let publish = |version: u32, permits: u32| {
        let name = format!("..{version}");
        fs::create_dir(folder.join(&name)).expect("a folder");
        fs::write(folder.join(&name).join("limits.toml"), limit(permits)).expect("written");
        symlink(&name, folder.join("..data_tmp")).expect("a link");
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("renamed");
    };
    publish(1, 10);
    let path = folder.join("limits.toml");
    symlink("..data/limits.toml", &path).expect("a link");
    let watched = Watched::new(path);
    for (version, permits) in [(2, 5), (3, 8)] {
        publish(version, permits);
        watched.reloaded();
        let old = folder.join(format!("..{}", version - 1));
        fs::remove_dir_all(old).expect("removed");
    }
    assert_eq!(watched.left(), Some(6));
}

#[cfg(unix)]
#[test]
fn a_file_in_another_folder_that_a_link_leads_to_is_reloaded() {
    use std::os::unix::fs::symlink;

    let here = folder("watch-link");
    let targets = ["watch-link-a", "watch-link-b"].map(|name| folder(name).join("target.toml"));
    let [first, second] = &targets;
    fs::write(second, limit(5)).expect("written");
    symlink(first, here.join("limits.toml")).expect("a link");
    let watched = Watched::new(here.join("limits.toml"));
    replace(first, &limit(20));
    watched.reloaded();
    // The link leads to the other folder from now on, so that one is watched.
    symlink(second, here.join("link")).expect("a link");
    fs::rename(here.join("link"), &watched.path).expect("renamed");
    watched.reloaded();
    assert_eq!(watched.left(), Some(3));
    replace(second, &limit(7));
    watched.reloaded();
    assert_eq!(watched.left(), Some(4));
}

#[test]
fn changes_during_a_report_are_one_change() {
    let path = folder("watch-many").join("limits.toml");
    fs::write(&path, limit(10)).expect("written");
    let live = LivePolicy::from_file(&path, Policy::builder()).expect("a policy");
    let live = Arc::new(live);
    let (sender, reports) = mpsc::channel();
    let (resume, resumed) = mpsc::channel::<()>();
    let seen = Arc::clone(&live);
    // Each report takes a permit of another user.
    let mut users = 0_u32..;
    let report = move |report: Report| {
        let _ = report.expect("a policy");
        let user = users.next().map_or_else(String::new, |n| n.to_string());
        let limit = seen.decide(&[("user", user.as_str())]).remaining();
        sender.send(limit).expect("a test that waits");
        let _ = resumed.recv();
    };
    let watch = live.watch(&path, NEVER, report).expect("a thread");
    replace(&path, &limit(20));
    assert_eq!(reports.recv_timeout(DEADLINE), Ok(Some(19)));
    for permits in 21..=40 {
        replace(&path, &limit(permits));
    }
    resume.send(()).expect("a report that waits");
    assert_eq!(reports.recv_timeout(DEADLINE), Ok(Some(39)));
    replace(&path, &limit(50));
    resume.send(()).expect("a report that waits");
    assert_eq!(reports.recv_timeout(DEADLINE), Ok(Some(49)));
    drop(resume);
    drop(watch);
}

#[test]
fn a_change_between_reading_and_watching_is_noticed() {
    let path = folder("watch-between").join("limits.toml");
    fs::write(&path, limit(10)).expect("written");
    let live = LivePolicy::from_file(&path, Policy::builder()).expect("a policy");
    replace(&path, &limit(5));
    Watched::with_policy(live, path, NEVER).reloaded();
}

#[test]
fn a_file_whose_folder_can_not_be_watched_is_polled() {
    let folder = folder("watch-poll").join("later");
    let path = folder.join("limits.toml");
    let live = LivePolicy::new(Policy::from_toml(&limit(10)).expect("a policy"));
    // 0 is as often as it may be.
    let watched = Watched::with_policy(live, path, Duration::ZERO);
    let error = watched.report().expect_err("no folder");
    assert!(matches!(error, FileError::Read { .. }), "{error}");
    fs::create_dir(&folder).expect("a folder");
    replace(&watched.path, &limit(5));
    watched.reloaded();
}

#[test]
fn a_watch_that_is_dropped_has_ended() {
    let watched = Watched::new(folder("watch-drop").join("limits.toml"));
    drop(watched.watch);
    assert_eq!(Arc::strong_count(&watched.live), 1);
    let ended = watched.reports.recv_timeout(Duration::ZERO);
    assert!(matches!(ended, Err(RecvTimeoutError::Disconnected)));
    replace(&watched.path, &limit(5));
    assert_eq!(watched.live.decide(&[("user", "ann")]).remaining(), Some(8));
}

#[test]
fn a_report_can_end_its_watch() {
    let path = folder("watch-ends-itself").join("limits.toml");
    fs::write(&path, limit(10)).expect("written");
    let live = LivePolicy::from_file(&path, Policy::builder()).expect("a policy");
    let live = Arc::new(live);
    let (sender, ended) = mpsc::channel();
    let slot = Arc::new(Mutex::new(None));
    let own = Arc::clone(&slot);
    let report = move |_| {
        drop(own.lock().expect("no panic").take());
        sender.send(()).expect("a test that waits");
    };
    *slot.lock().expect("no panic") = Some(live.watch(&path, NEVER, report).expect("a thread"));
    replace(&path, &limit(5));
    assert_eq!(ended.recv_timeout(DEADLINE), Ok(()));
    // The thread ends, and drops the function.
    let end = ended.recv_timeout(DEADLINE);
    assert_eq!(end, Err(RecvTimeoutError::Disconnected));
}

#[test]
fn threads_decide_while_the_file_is_reloaded_and_after_a_bad_one() {
    let watched = Watched::new(folder("watch-decide").join("limits.toml"));
    thread::scope(|scope| {
        let (stop, stopped) = mpsc::channel::<()>();
        let live = &watched.live;
        let decides = scope.spawn(move || {
            let mut decisions = 0_u64;
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let user = decisions.to_string();
                let decision = live.decide(&[("user", user.as_str())]);
                assert!(decision.is_allowed(), "{decision:?}");
                decisions += 1;
            }
            decisions
        });
        for permits in 11..16 {
            replace(&watched.path, &limit(permits));
            watched.reloaded();
            replace(&watched.path, "[[rule]]\nname = 'a'");
            assert!(watched.report().is_err());
        }
        drop(stop);
        assert!(decides.join().expect("no panic") > 0);
    });
}

#[test]
fn a_watch_can_move_between_threads() {
    fn assert_send_sync<T: Send + Sync + std::fmt::Debug>() {}
    assert_send_sync::<Watch>();
}
