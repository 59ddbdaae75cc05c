//! The server of Redis or Valkey that a policy's file names.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tollgate::clock::SystemClock;
use tollgate_policy::file::{Format, PolicyFile, StoreSettings, read_text};
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{Policy, PolicyBuilder};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Keys, OutageEvent, RedisServer};

use crate::error::StartError;

/// The server that has the limits of a policy, if its file names one.
pub(crate) struct Store {
    pub(crate) server: Arc<RedisServer<Connection>>,
    keys: Keys,
}

impl Store {
    /// Reads which server a policy's file names. It connects when it is first asked.
    ///
    /// A file that can't be read, or has errors, names none: whoever makes a policy of it finds all
    /// errors.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>, StartError> {
        let file = read_text(path).ok();
        let file = file.and_then(|text| PolicyFile::from_text(&text, Format::of_path(path)).ok());
        let Some(settings) = file.and_then(|file| file.store) else {
            return Ok(None);
        };
        Self::connect(&settings).map(Some)
    }

    fn connect(settings: &StoreSettings) -> Result<Self, StartError> {
        let url = settings.resolve_url().map_err(StartError::StoreUrl)?;
        let failed = |error: &dyn fmt::Display| StartError::Store(error.to_string());
        let client = connect_lazily(url.reveal()).map_err(|error| failed(&error))?;
        let keys = Keys::new(&settings.namespace).map_err(|error| failed(&error))?;
        let server = RedisServer::new(client).on_outage(|event| match event {
            OutageEvent::Began { .. } => tracing::error!("{event}"),
            _ => tracing::info!("{event}"),
        });
        let server = match &settings.budget {
            Some(budget) => server.with_budget(budget.value),
            None => server,
        };
        let server = Arc::new(server);
        Ok(Self { server, keys })
    }

    /// Returns what makes a policy whose limits this server may have.
    pub(crate) fn builder(this: Option<&Self>) -> PolicyBuilder<SystemClock> {
        let builder = Policy::builder();
        match this {
            Some(store) => {
                let server = Arc::clone(&store.server);
                builder.store("redis", RedisStore::new(server, store.keys.clone()))
            }
            None => builder,
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
