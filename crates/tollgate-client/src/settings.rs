//! What all clones of a client share.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderName, Method};
use tower::retry::budget::Budget;

use super::clock::SinceMade;
use super::memory::{GroupKey, Memory};
use super::message::RequestHead;
use super::quota::OwnQuota;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What a layer is set to.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) clock: SinceMade,
    pub(super) quota: Option<Arc<OwnQuota>>,
    pub(super) budget: Arc<dyn Budget + Send + Sync>,
    pub(super) max_attempts: u32,
    pub(super) max_wait: Duration,
    pub(super) max_hold: Duration,
    pub(super) max_groups: usize,
    pub(super) retried: Vec<Method>,
    pub(super) group_by: GroupBy,
}

/// What all clones of a service share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) memory: Arc<Memory>,
}

impl Shared {
    /// Returns the group of a request.
    pub(super) fn key(&self, head: &RequestHead<'_>) -> GroupKey {
        self.memory
            .key(head, |hasher| (self.settings.group_by.0)(head, hasher))
    }

    /// Returns whether the server may get this request twice.
    pub(super) fn may_repeat(&self, head: &RequestHead<'_>) -> bool {
        head.method().is_idempotent()
            || head.headers().contains_key(IDEMPOTENCY_KEY)
            || self.settings.retried.contains(head.method())
    }
}

type HashInto = dyn Fn(&RequestHead<'_>, &mut dyn Hasher) + Send + Sync;

/// Hashes what tells groups of one origin apart.
#[derive(Clone)]
pub(super) struct GroupBy(Arc<HashInto>);

impl GroupBy {
    /// The field `Authorization`.
    pub(super) fn authorization() -> Self {
        Self::new(|head| head.headers().get(AUTHORIZATION).cloned())
    }

    pub(super) fn new<K: Hash>(
        key: impl Fn(&RequestHead<'_>) -> K + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |head, mut hasher| {
            key(head).hash(&mut hasher)
        }))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("quota", &self.quota)
            .field("max_attempts", &self.max_attempts)
            .field("max_wait", &self.max_wait)
            .field("max_hold", &self.max_hold)
            .field("max_groups", &self.max_groups)
            .field("retried", &self.retried)
            .finish_non_exhaustive()
    }
}
