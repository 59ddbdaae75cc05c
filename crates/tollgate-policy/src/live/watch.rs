//! Reloads a policy when its file changes.
//!
//! Only the file's contents decide whether it changed. Events of the file system merely say when to
//! read it, so an event too many does no harm, and one too few delays the reload until the next
//! poll.

use std::fs;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::file::disk::FileError;
use crate::limit::PolicyClock;
use crate::live::{LivePolicy, Reloaded};

/// How long there must be no event before the file is read.
const QUIET: Duration = Duration::from_millis(50);
/// The most events to wait for before the file is read.
const MAX_EVENTS: usize = 20;

/// A policy's file is watched as long as this lives: see [`LivePolicy::watch`]. Dropping it waits
/// until a reload that is under way ends.
///
/// ```no_run
/// use std::{sync::Arc, time::Duration};
/// use tollgate_policy::{LivePolicy, Policy, Watch};
///
/// struct Gateway {
///     limits: Arc<LivePolicy>,
///     _watch: Watch,
/// }
///
/// let limits = Arc::new(LivePolicy::from_file("limits.toml", Policy::builder())?);
/// let watch = limits.watch("limits.toml", Duration::from_secs(10), |report| match report {
///     Ok(reloaded) => println!("new limits: {reloaded:?}"),
///     Err(error) => eprintln!("the limits stay as they are: {error}"),
/// })?;
/// let gateway = Gateway { limits, _watch: watch };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it ends the watch"]
pub struct Watch {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.signal.set(|state| state.is_stopped = true);
        let thread = self.thread.take();
        // `report` may drop the watch. Its thread can't wait for itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != thread::current().id()) {
            // The only error is a panic of `report`, which has been printed.
            let _ = thread.join();
        }
    }
}

impl<C: PolicyClock> LivePolicy<C> {
    /// Reloads the policy from a file whenever the file changes, until the returned [`Watch`] is
    /// dropped.
    ///
    /// It notices files that are written in place, replaced by a rename, or reached by a symbolic
    /// link that changes, as in a ConfigMap of Kubernetes. Changes within 50 ms of each other are
    /// one. The file is also read once in each period of `poll` (at least 50 ms): some file
    /// systems, such as those of a network, send no events.
    ///
    /// `report` is called in the thread that watches, after each reload and each error. After an
    /// error the policy stays as it is until the file changes again. If `report` panics, the watch
    /// ends.
    ///
    /// ```
    /// use std::{sync::{Arc, mpsc}, time::Duration};
    /// use tollgate_policy::{LivePolicy, Policy, RuleState};
    ///
    /// # let path = std::env::temp_dir().join(format!("watch-{}.toml", std::process::id()));
    /// # std::fs::write(&path, "[[rule]]\nname = 'api'\nlimit = '5/h'")?;
    /// let live = Arc::new(LivePolicy::from_file(&path, Policy::builder())?);
    /// let (sender, reports) = mpsc::channel();
    /// let watch = live.watch(&path, Duration::from_secs(10), move |report| {
    ///     let _ = sender.send(report);
    /// })?;
    ///
    /// # let new = path.with_extension("new");
    /// std::fs::write(&new, "[[rule]]\nname = 'api'\nlimit = '3/h'")?;
    /// std::fs::rename(&new, &path)?;
    /// assert_eq!(reports.recv()??.state("api"), Some(RuleState::Migrated));
    /// # drop(watch);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An error of the system if no thread can be started, or if the path is relative and there is
    /// no current folder. A file that can't be read is an error that `report` gets.
    pub fn watch(
        self: &Arc<Self>,
        path: impl AsRef<Path>,
        poll: Duration,
        report: impl FnMut(Result<Reloaded, FileError>) + Send + 'static,
    ) -> io::Result<Watch> {
        let signal = Arc::new(Signal::default());
        let task = Task {
            live: Arc::clone(self),
            path: path::absolute(path)?,
            poll: poll.max(QUIET),
            report,
            signal: Arc::clone(&signal),
        };
        let thread = thread::Builder::new().name("policy-watch".to_owned());
        let thread = Some(thread.spawn(move || task.run())?);
        Ok(Watch { signal, thread })
    }
}

/// What the thread that watches does.
struct Task<C, F> {
    live: Arc<LivePolicy<C>>,
    path: PathBuf,
    poll: Duration,
    report: F,
    signal: Arc<Signal>,
}

impl<C: PolicyClock, F: FnMut(Result<Reloaded, FileError>)> Task<C, F> {
    fn run(mut self) {
        // The folders are watched before the file is read, so that no change is missed.
        let mut _watcher = watcher_of(&self.path, &self.signal);
        loop {
            let mut next = self.live.reload_if_changed(&self.path);
            while let Some(report) = next {
                // The folders may have changed: watch them anew, and read the file again.
                _watcher = watcher_of(&self.path, &self.signal);
                next = self.live.reload_if_changed(&self.path);
                (self.report)(report);
            }
            if !self.signal.wait_until_quiet(self.poll) {
                return;
            }
        }
    }
}

/// Watches the folder of a file, and that of the file that it links to. Returns `None` if the
/// system has no more watchers. A folder that can't be watched is left out.
fn watcher_of(path: &Path, signal: &Arc<Signal>) -> Option<RecommendedWatcher> {
    let signal = Arc::clone(signal);
    let on_event = move |event: notify::Result<Event>| {
        // Reading a file is an event too. After an error, events may be missing.
        if !event.is_ok_and(|event| event.kind.is_access()) {
            signal.set(|state| state.is_changed = true);
        }
    };
    let mut watcher = notify::recommended_watcher(on_event).ok()?;
    let target = fs::canonicalize(path).ok();
    let folder = path.parent();
    let of_target = target.as_deref().and_then(Path::parent);
    let of_target = of_target.filter(|of_target| Some(*of_target) != folder);
    for folder in [folder, of_target].into_iter().flatten() {
        let _ = watcher.watch(folder, RecursiveMode::NonRecursive);
    }
    Some(watcher)
}

/// Wakes the thread that watches.
#[derive(Debug, Default)]
struct Signal {
    state: Mutex<State>,
    condition: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_changed: bool,
    is_stopped: bool,
}

/// Why the thread that watches woke.
enum Wake {
    Event,
    Poll,
    Stop,
}

impl Signal {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.condition.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an event, for at most this time.
    fn wait(&self, most: Duration) -> Wake {
        let is_idle = |state: &mut State| !state.is_changed && !state.is_stopped;
        let woken = self
            .condition
            .wait_timeout_while(self.lock(), most, is_idle);
        let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        match (state.is_stopped, std::mem::take(&mut state.is_changed)) {
            (true, _) => Wake::Stop,
            (false, true) => Wake::Event,
            (false, false) => Wake::Poll,
        }
    }

    /// Waits for an event, for at most this time, and then until there are no more events. Returns
    /// false if the watch has ended.
    fn wait_until_quiet(&self, most: Duration) -> bool {
        let mut wake = self.wait(most);
        for _ in 0..MAX_EVENTS {
            match wake {
                Wake::Event => wake = self.wait(QUIET),
                Wake::Poll => return true,
                Wake::Stop => return false,
            }
        }
        true
    }
}
