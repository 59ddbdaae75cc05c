//! The state of a policy, from one process to the next.

mod lock;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tollgate::clock::SystemClock;
use tollgate_policy::{LivePolicy, PolicyBuilder, StateError};

use crate::error::StartError;
use crate::settings::StateSettings;

pub(crate) use self::lock::Lock;

type Builder = PolicyBuilder<SystemClock>;

/// Makes a builder that restores the state that a file has, and locks the file.
///
/// A file that can't be read does not stop the service unless the settings say so. It is put aside,
/// so nothing is lost.
pub(crate) fn restore(
    make: impl Fn() -> Builder,
    settings: &StateSettings,
) -> Result<(Builder, Lock), StartError> {
    let path = &settings.path;
    let locked = Lock::of(path).map_err(|error| StartError::State {
        path: path.clone(),
        why: StateError::Io(error),
    })?;
    let Some(lock) = locked else {
        let path = path.clone();
        return Err(StartError::StateInUse { path });
    };
    let builder = restore_locked(make, settings)?;
    Ok((builder, lock))
}

fn restore_locked(
    make: impl Fn() -> Builder,
    settings: &StateSettings,
) -> Result<Builder, StartError> {
    let path = &settings.path;
    let restored = match File::open(path) {
        Ok(file) => make().restore(&mut BufReader::new(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(make()),
        Err(error) => Err(StateError::Io(error)),
    };
    let why = match restored {
        Ok(builder) => {
            tracing::info!(file = %path.display(), "the state was restored");
            return Ok(builder);
        }
        Err(why) => why,
    };
    // Where it can't be put aside, the next save would put an end to it.
    let aside = (!settings.strict).then(|| put_aside(path).ok()).flatten();
    let Some(aside) = aside else {
        let path = path.clone();
        return Err(StartError::State { path, why });
    };
    let kept = aside.display();
    tracing::error!(file = %path.display(), %why, %kept, "limits begin anew, without the state");
    Ok(make())
}

/// Renames a file to a name that no file has, and returns it.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let end = format!(".bad-{}", unix_seconds(SystemTime::now()));
    for n in 0..100 {
        // Another one may have been put aside in the same second.
        let aside = match n {
            0 => beside(path, &end),
            n => beside(path, &format!("{end}-{n}")),
        };
        match File::options().write(true).create_new(true).open(&aside) {
            Ok(_) => return fs::rename(path, &aside).map(|()| aside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns the path of a file in the same folder, whose name ends in this.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(end);
    path.with_file_name(name)
}

pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.as_ref().map_or(0, Duration::as_secs)
}

/// Saves a policy's state.
#[derive(Debug)]
pub(crate) struct Saver {
    policy: Arc<LivePolicy>,
    settings: StateSettings,
    _lock: Lock,
    /// When it was last saved, in seconds since 1970. 0 if never.
    pub(crate) saved_at: AtomicU64,
    pub(crate) saves: AtomicU64,
    pub(crate) failures: AtomicU64,
    has_failed: AtomicBool,
}

impl Saver {
    pub(crate) fn new(policy: Arc<LivePolicy>, settings: StateSettings, lock: Lock) -> Self {
        Self {
            policy,
            settings,
            _lock: lock,
            saved_at: AtomicU64::new(0),
            saves: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Returns within how many seconds the state should be saved: a minute, or three turns.
    pub(crate) fn due_s(&self) -> u64 {
        self.settings.every.as_secs().saturating_mul(3).max(60)
    }

    /// Saves the state every few seconds, until `stop` is set.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        // An interval must not be zero.
        let every = self.settings.every.max(Duration::from_millis(1));
        let mut every = tokio::time::interval(every);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let stops = tokio::select! {
                _ = every.tick() => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            if stops {
                return;
            }
            Arc::clone(&self).save().await;
        }
    }

    /// Saves the state now. A failure is logged once, until it works again.
    pub(crate) async fn save(self: Arc<Self>) {
        let saver = Arc::clone(&self);
        let saved = tokio::task::spawn_blocking(move || saver.write()).await;
        let saved = saved.unwrap_or_else(|error| Err(io::Error::other(error)));
        match saved {
            Ok(()) => {
                self.saved_at
                    .store(unix_seconds(SystemTime::now()), Relaxed);
                self.saves.fetch_add(1, Relaxed);
                if self.has_failed.swap(false, Relaxed) {
                    tracing::info!("the state is saved again");
                }
            }
            Err(error) => {
                self.failures.fetch_add(1, Relaxed);
                if !self.has_failed.swap(true, Relaxed) {
                    let file = self.settings.path.display();
                    tracing::error!(%file, %error, "the state can't be saved");
                }
            }
        }
    }

    /// Writes another file, and puts it in the place of the file: a reader sees either as a whole.
    fn write(&self) -> io::Result<()> {
        let path = &self.settings.path;
        let new = beside(path, ".new");
        // What another process left there may have other permissions, or be a link.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = BufWriter::new(create(&new)?);
        self.policy.load().snapshot(&mut file)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&new, path)?;
        // The folder knows the new file only when it is written too.
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            // Not every file system can.
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// Creates a file that only its owner can read: the state has the secret seed of the keys' hashes.
fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
