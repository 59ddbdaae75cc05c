//! Policies that take the place of others.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tollgate_policy::{FileError, LivePolicy, Reloaded};

use crate::ends;
#[cfg(feature = "tls")]
use crate::tls::Certificate;

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
        }
    }

    pub(crate) fn reload(&self) -> Result<Reloaded, FileError> {
        #[cfg(feature = "tls")]
        match self.certificate.as_ref().map(|it| it.reload()) {
            Some(Ok(())) => tracing::info!("the certificate was read again"),
            Some(Err(error)) => tracing::error!(%error, "the certificate stays as it is"),
            None => {}
        }
        let reloaded = match &self.path {
            Some(path) => self.policy.reload_file(path),
            None => Ok(Reloaded::default()),
        };
        self.report(&reloaded);
        reloaded
    }

    pub(crate) fn report(&self, report: &Result<Reloaded, FileError>) {
        match report {
            Ok(reloaded) => {
                self.done.fetch_add(1, Relaxed);
                let rules = reloaded.rules().len();
                tracing::info!(rules, "the policy was reloaded");
                for warning in reloaded.warnings().iter() {
                    tracing::warn!(%warning, "the policy");
                }
                ends::warn(&self.policy.load());
            }
            Err(error) => {
                self.failed.fetch_add(1, Relaxed);
                tracing::error!(%error, "the policy stays as it is");
            }
        }
    }
}
