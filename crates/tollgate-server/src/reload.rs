//! Policies that take the place of others.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use tollgate_policy::{FileError, LivePolicy, Reloaded};

use crate::ends;
use crate::error::ReloadError;
use crate::state::unix_seconds;
#[cfg(feature = "tls")]
use crate::tls::{Certificate, TlsError};

/// Reads a policy's file again, and counts and logs what became of it.
#[derive(Debug)]
pub(crate) struct Reloader {
    pub(crate) policy: Arc<LivePolicy>,
    /// The file. The built-in policy has none.
    pub(crate) path: Option<PathBuf>,
    #[cfg(feature = "tls")]
    pub(crate) certificate: Option<Arc<Certificate>>,
    pub(crate) done: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// When a policy last took its place, in seconds since 1970.
    pub(crate) done_at: AtomicU64,
    /// Why the file was refused, if the policy that decides is an older one.
    refused: ArcSwapOption<Refusal>,
    /// When the certificate was first refused after one took its place, in seconds since 1970. 0 if
    /// the newest one is used.
    pub(crate) certificate_refused: AtomicU64,
}

/// Why a policy's file was refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// When it was first refused after a policy took its place, in seconds since 1970.
    pub(crate) since: u64,
    /// All errors, a line for each.
    pub(crate) why: String,
}

impl Reloader {
    pub(crate) fn new(policy: Arc<LivePolicy>, path: Option<PathBuf>) -> Self {
        Self {
            policy,
            path,
            #[cfg(feature = "tls")]
            certificate: None,
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            done_at: AtomicU64::new(unix_seconds(SystemTime::now())),
            refused: ArcSwapOption::empty(),
            certificate_refused: AtomicU64::new(0),
        }
    }

    /// Reads the policy and the certificate again. Each goes on without the other.
    pub(crate) fn reload(&self) -> Result<Reloaded, ReloadError> {
        #[cfg(feature = "tls")]
        let certificate = self.reload_certificate();
        let reloaded = match &self.path {
            Some(path) => self.policy.reload_file(path),
            None => Ok(Reloaded::default()),
        };
        self.report(&reloaded);
        let reloaded = reloaded.map_err(ReloadError::Policy)?;
        #[cfg(feature = "tls")]
        certificate.map_err(ReloadError::Tls)?;
        Ok(reloaded)
    }

    #[cfg(feature = "tls")]
    fn reload_certificate(&self) -> Result<(), TlsError> {
        let Some(certificate) = &self.certificate else {
            return Ok(());
        };
        let read = certificate.reload();
        match &read {
            Ok(()) => {
                self.certificate_refused.store(0, Relaxed);
                tracing::info!("the certificate was read again");
            }
            Err(error) => {
                self.failed.fetch_add(1, Relaxed);
                if self.certificate_refused.load(Relaxed) == 0 {
                    let now = unix_seconds(SystemTime::now());
                    self.certificate_refused.store(now, Relaxed);
                }
                tracing::error!(%error, "the certificate stays as it is");
            }
        }
        read
    }

    /// Returns why the file was refused, if the policy that decides is an older one.
    pub(crate) fn refused(&self) -> Option<Arc<Refusal>> {
        self.refused.load_full()
    }

    pub(crate) fn report(&self, report: &Result<Reloaded, FileError>) {
        match report {
            Ok(reloaded) => {
                let now = unix_seconds(SystemTime::now());
                self.done_at.store(now, Relaxed);
                self.refused.store(None);
                // Last: the page asks again for what it shows when this changes.
                self.done.fetch_add(1, Relaxed);
                let rules = reloaded.rules().len();
                tracing::info!(rules, "the policy was reloaded");
                for warning in reloaded.warnings().iter() {
                    tracing::warn!(%warning, "the policy");
                }
                ends::warn(&self.policy.load());
            }
            Err(error) => {
                let before = self.refused().map(|it| it.since);
                self.refused.store(Some(Arc::new(Refusal {
                    since: before.unwrap_or_else(|| unix_seconds(SystemTime::now())),
                    why: error.to_string(),
                })));
                self.failed.fetch_add(1, Relaxed);
                tracing::error!(%error, "the policy stays as it is");
            }
        }
    }
}
