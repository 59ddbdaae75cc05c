//! A store of a policy that takes a while to answer, and whose permits come back only by hand.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tollgate::outcome::{GrantInfo, Settled};
use tollgate::{Denied, Granted, Tick};
use tollgate_policy::{
    LimitSpec, RemoteAsk, RemoteDenied, RemoteError, RemoteFuture, RemoteGrants, RemoteLimit,
    RemoteRefusal, RemoteStore,
};

use crate::random::Random;

/// The name of a rule, and a key.
type Key = (String, Vec<u8>);

/// A store. The text of its limits is a number of permits.
#[derive(Debug, Clone)]
pub(crate) struct SlowStore(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    random: Random,
    taken: BTreeMap<Key, u64>,
    calls: u64,
}

#[derive(Debug)]
struct Limit {
    rule: String,
    permits: u64,
}

#[derive(Debug)]
struct Grants {
    store: SlowStore,
    taken: Vec<(Key, GrantInfo)>,
}

impl SlowStore {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: Random::new(seed),
            taken: BTreeMap::new(),
            calls: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many permits of a rule are taken, over all keys.
    pub(crate) fn taken(&self) -> u64 {
        self.state().taken.values().sum()
    }

    /// Returns how often the store was asked.
    pub(crate) fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Waits for some polls.
    async fn pause(&self) {
        let mut polls = self.state().random.below(4);
        poll_fn(move |context| {
            if polls == 0 {
                return Poll::Ready(());
            }
            polls -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    fn take_now(&self, asked: &[RemoteAsk<'_>]) -> Result<Vec<(Key, GrantInfo)>, RemoteDenied> {
        let mut state = self.state();
        state.calls += 1;
        let mut taken = Vec::new();
        for (index, ask) in asked.iter().enumerate() {
            let limit: &Limit = ask.limit.downcast_ref().unwrap();
            let key = (limit.rule.clone(), ask.key.bytes().to_vec());
            let had = state.taken.get(&key).copied().unwrap_or(0);
            let Some(left) = limit.permits.saturating_sub(had).checked_sub(ask.cost) else {
                return Err(RemoteDenied {
                    index,
                    denied: Denied::later(ask.cost, Duration::from_millis(5)),
                    fallback: None,
                });
            };
            let granted = Granted::new(ask.cost, Tick::ZERO).with_remaining(left, NonZeroU64::MIN);
            taken.push((key, granted.info()));
        }
        for (key, info) in &taken {
            *state.taken.entry(key.clone()).or_default() += info.n();
        }
        Ok(taken)
    }
}

impl RemoteStore for SlowStore {
    fn limit(&self, spec: &LimitSpec<'_>) -> Result<Arc<RemoteLimit>, Vec<RemoteRefusal>> {
        Ok(Arc::new(Limit {
            rule: spec.rule.to_owned(),
            permits: spec.limits[0].parse().unwrap(),
        }))
    }

    fn take<'a>(
        &'a self,
        asked: &'a [RemoteAsk<'a>],
    ) -> RemoteFuture<'a, Result<Box<dyn RemoteGrants>, RemoteDenied>> {
        Box::pin(async move {
            self.pause().await;
            let taken = self.take_now(asked);
            self.pause().await;
            let store = self.clone();
            taken.map(|taken| Box::new(Grants { store, taken }) as Box<dyn RemoteGrants>)
        })
    }

    fn ban_for<'a>(&'a self, _: RemoteAsk<'a>, _: Duration) -> RemoteFuture<'a, Option<Duration>> {
        Box::pin(async { None })
    }
}

impl RemoteGrants for Grants {
    fn info(&self, index: usize) -> Option<GrantInfo> {
        self.taken.get(index).map(|(_, info)| *info)
    }

    fn settle(
        self: Box<Self>,
        actual: Vec<u64>,
    ) -> RemoteFuture<'static, Result<Settled, RemoteError>> {
        Box::pin(async move {
            self.store.pause().await;
            let mut state = self.store.state();
            for ((key, info), actual) in self.taken.into_iter().zip(actual) {
                let taken = state.taken.get_mut(&key).unwrap();
                *taken = taken.checked_sub(info.n()).unwrap() + actual;
            }
            Ok(Settled::default())
        })
    }

    fn undo(self: Box<Self>) -> RemoteFuture<'static, Result<u64, RemoteError>> {
        Box::pin(async move {
            self.store.pause().await;
            let mut state = self.store.state();
            for (key, info) in self.taken {
                let taken = state.taken.get_mut(&key).unwrap();
                *taken = taken.checked_sub(info.n()).unwrap();
            }
            Ok(0)
        })
    }
}
