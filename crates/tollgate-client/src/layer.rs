use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tollgate::Quota;
use tollgate::error::QuotaError;
use tower::Layer;
use tower::retry::budget::Budget;

use super::budget::RetryBudget;
use super::clock::SinceMade;
use super::copy::CloneRequest;
use super::memory::Memory;
use super::message::RequestHead;
use super::quota::OwnQuota;
use super::service::ClientLimit;
use super::settings::{GroupBy, Settings, Shared};

/// Paces the requests of a client by its own quota and by what servers say, and sends some of them
/// again.
///
/// [The crate](crate) has an example, and says how requests are paced and which ones are retried.
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientLimitLayer<C = CloneRequest> {
    settings: Settings,
    pub(super) copier: C,
    memory: Arc<Memory>,
}

impl ClientLimitLayer {
    /// Makes a layer without a quota of your own.
    ///
    /// Services that the layer makes share all state, and so do those of its clones.
    pub fn new() -> Self {
        Self {
            settings: Settings {
                clock: SinceMade::now(),
                quota: None,
                budget: Arc::new(RetryBudget::default()),
                max_attempts: 3,
                max_wait: Duration::from_secs(30),
                max_hold: Duration::from_secs(300),
                max_groups: 1024,
                retried: Vec::new(),
                group_by: GroupBy::authorization(),
            },
            copier: CloneRequest,
            memory: Arc::new(Memory::new()),
        }
    }
}

impl Default for ClientLimitLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> ClientLimitLayer<C> {
    /// Sends at most as many requests as this quota, to all servers together. Each attempt counts.
    /// Requests wait for their permits in the order of their arrival; with several servers, the
    /// servers take turns.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] names the field of the quota that can't be represented, and what is allowed.
    pub fn quota(mut self, quota: Quota) -> Result<Self, QuotaError> {
        self.settings.quota = Some(Arc::new(OwnQuota::new(quota, self.settings.clock)?));
        Ok(self)
    }

    /// Sets the longest time that a request waits before it is sent, and again before each retry.
    /// The default is 30 seconds.
    ///
    /// A request that would have to wait longer fails with
    /// [`WaitTooLong`](super::ClientLimitError::WaitTooLong). If it has been refused, and the
    /// server says a longer wait, the caller gets the refusal.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.settings.max_wait = wait;
        self
    }

    /// Sets for how long a server can stop requests at most. After this time, one request asks the
    /// server again, and the others wait for its answer. The default is 5 minutes.
    pub fn max_hold(mut self, hold: Duration) -> Self {
        self.settings.max_hold = hold;
        self
    }

    /// Sets how often a request is sent at most. The default is 3, and 1 means no retries.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.settings.max_attempts = attempts;
        self
    }

    /// Sets the budget of retries: a [`RetryBudget`], or another one for tower, such as its
    /// `TpsBudget`. The default is 20 % of the requests plus 10 in any second.
    pub fn budget(mut self, budget: impl Budget + Send + Sync + 'static) -> Self {
        self.settings.budget = Arc::new(budget);
        self
    }

    /// Retries requests of this method also if the server may have begun with them. By default
    /// these are GET, HEAD, OPTIONS, TRACE, PUT and DELETE, and requests with an `Idempotency-Key`.
    pub fn retry_method(mut self, method: Method) -> Self {
        self.settings.retried.push(method);
        self
    }

    /// Sets what tells the groups of one server apart. The default is the field `Authorization`.
    ///
    /// A server limits its callers by a key that the layer can't see. So the layer paces each group
    /// of requests by the answers to that group. Group requests by what the server identifies its
    /// callers by. If it has different limits for different paths, add a part of the path.
    ///
    /// ```
    /// use tollgate_client::ClientLimitLayer;
    ///
    /// let layer = ClientLimitLayer::new().group_by(|head| {
    ///     let section = head.path().split('/').nth(1).map(str::to_owned);
    ///     (head.headers().get("x-api-key").cloned(), section)
    /// });
    /// # _ = layer;
    /// ```
    pub fn group_by<K: Hash>(
        mut self,
        key: impl Fn(&RequestHead<'_>) -> K + Send + Sync + 'static,
    ) -> Self {
        self.settings.group_by = GroupBy::new(key);
        self
    }

    /// Sets how many groups are remembered. The default is 1024. A new group then replaces one that
    /// was used less recently. The replaced group's next requests go without a wait.
    ///
    /// Servers are spread over 16 tables. A group replaces one in its own table whose requests
    /// don't wait. If there is none, there is one group more.
    pub fn max_groups(mut self, groups: usize) -> Self {
        self.settings.max_groups = groups;
        self
    }

    /// Sets how requests are copied for retries. The default is to clone them. With
    /// [`NeverCopy`](super::NeverCopy) they need not be `Clone`, and none is retried.
    pub fn copy_with<D>(self, copier: D) -> ClientLimitLayer<D> {
        ClientLimitLayer {
            settings: self.settings,
            copier,
            memory: self.memory,
        }
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::new(Shared {
            settings: self.settings.clone(),
            memory: Arc::clone(&self.memory),
        })
    }
}

impl<S, C: Clone> Layer<S> for ClientLimitLayer<C> {
    type Service = ClientLimit<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        ClientLimit {
            inner,
            copier: self.copier.clone(),
            shared: self.shared(),
        }
    }
}
