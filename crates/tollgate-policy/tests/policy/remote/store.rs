//! A store in memory that answers when the test lets it.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tollgate::outcome::{GrantInfo, Settled};
use tollgate::{Denied, Granted, Tick};
use tollgate_policy::{
    FallbackKind, LimitSpec, RemoteAsk, RemoteDenied, RemoteError, RemoteFuture, RemoteGrants,
    RemoteLimit, RemoteRefusal, RemoteStore,
};

/// Counts permits that never come back by themselves. A limit's text is its number of permits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store(Arc<Mutex<State>>);

#[derive(Debug)]
pub(crate) struct State {
    /// What each key of each limit has taken.
    pub(crate) taken: BTreeMap<Key, u64>,
    /// The calls that the store got, such as `take [a b]`.
    pub(crate) calls: Vec<String>,
    pub(crate) banned: Vec<(Key, Duration)>,
    /// The number of times that each call returns `Pending`, before and after it takes effect.
    pub(crate) pending: [u32; 2],
    pub(crate) is_down: bool,
    /// Which fallback denies while the store is down.
    pub(crate) fallback: FallbackKind,
    /// What denials answer, in place of a wait.
    pub(crate) denied: Option<Denied>,
    /// Whether the store can say what keys have, and reset them.
    pub(crate) has_verbs: bool,
    /// The position that denials name, in place of the right one.
    pub(crate) wrong_index: Option<usize>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            taken: BTreeMap::new(),
            calls: Vec::new(),
            banned: Vec::new(),
            pending: [0, 0],
            is_down: false,
            fallback: FallbackKind::Closed,
            denied: None,
            has_verbs: false,
            wrong_index: None,
        }
    }
}

/// The limit, such as `a` or `a/1`, and the key.
pub(crate) type Key = (String, Vec<u8>);

#[derive(Debug)]
struct Limit {
    name: String,
    permits: Vec<u64>,
}

#[derive(Debug)]
struct Grants {
    store: Store,
    taken: Vec<(Key, GrantInfo)>,
}

impl Store {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many permits of a rule's first limit are taken, over all keys. The second limit
    /// of `a` is `a/1`.
    pub(crate) fn taken(&self, rule: &str) -> u64 {
        let state = self.state();
        let of_rule = state.taken.iter().filter(|((name, ..), _)| name == rule);
        of_rule.map(|(_, taken)| taken).sum()
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    async fn wait(&self, which: usize) {
        let mut left = self.state().pending[which];
        poll_fn(move |context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Asks or changes the state, if the store can.
    fn verb<'a, T: 'a>(
        &'a self,
        run: impl FnOnce(&mut State) -> T + Send + 'a,
    ) -> Option<RemoteFuture<'a, Result<T, RemoteError>>> {
        self.state().has_verbs.then_some(())?;
        Some(Box::pin(async move {
            self.wait(0).await;
            let mut state = self.state();
            match state.is_down {
                true => Err("the store is down".into()),
                false => Ok(run(&mut state)),
            }
        }))
    }

    fn take_now(&self, asked: &[RemoteAsk<'_>]) -> Result<Vec<(Key, GrantInfo)>, RemoteDenied> {
        let mut state = self.state();
        let limits: Vec<_> = asked.iter().map(limit).collect();
        let names: Vec<_> = limits.iter().map(|limit| limit.name.as_str()).collect();
        state.calls.push(format!("take [{}]", names.join(" ")));
        let mut taken = Vec::new();
        for (index, (ask, limit)) in asked.iter().zip(&limits).enumerate() {
            let key = key(ask);
            let had = state.taken.get(&key).copied().unwrap_or(0);
            let left = limit.permits[ask.plan]
                .saturating_sub(had)
                .checked_sub(ask.cost);
            if left.is_none() || state.is_down {
                let wait = Duration::from_secs(if state.is_down { 1 } else { 30 });
                return Err(RemoteDenied {
                    index: state.wrong_index.unwrap_or(index),
                    denied: state.denied.unwrap_or(Denied::later(ask.cost, wait)),
                    fallback: state.is_down.then_some(state.fallback),
                });
            }
            let granted = Granted::new(ask.cost, Tick::from_nanos(0));
            let granted = granted.with_remaining(left.unwrap_or(0), std::num::NonZeroU64::MIN);
            taken.push((key, granted.info()));
        }
        for (key, info) in &taken {
            *state.taken.entry(key.clone()).or_default() += info.n();
        }
        Ok(taken)
    }
}

fn limit<'a>(ask: &RemoteAsk<'a>) -> &'a Limit {
    ask.limit.downcast_ref().expect("a limit of this store")
}

fn key(ask: &RemoteAsk<'_>) -> Key {
    (limit(ask).name.clone(), ask.key.bytes().to_vec())
}

impl RemoteStore for Store {
    fn limit(&self, spec: &LimitSpec<'_>) -> Result<Arc<RemoteLimit>, Vec<RemoteRefusal>> {
        let permits = spec.limits.iter().map(|text| text.parse());
        let permits: Result<_, _> = permits.collect();
        Ok(Arc::new(Limit {
            name: match spec.index {
                0 => spec.rule.to_owned(),
                index => format!("{}/{index}", spec.rule),
            },
            permits: permits.map_err(|_| ["must be a number of permits".into()])?,
        }))
    }

    fn take<'a>(
        &'a self,
        asked: &'a [RemoteAsk<'a>],
    ) -> RemoteFuture<'a, Result<Box<dyn RemoteGrants>, RemoteDenied>> {
        Box::pin(async move {
            self.wait(0).await;
            let taken = self.take_now(asked);
            self.wait(1).await;
            let store = self.clone();
            taken.map(|taken| Box::new(Grants { store, taken }) as Box<dyn RemoteGrants>)
        })
    }

    fn ban_for<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
        long: Duration,
    ) -> RemoteFuture<'a, Option<Duration>> {
        let mut state = self.state();
        state.banned.push((key(&ask), long));
        let told = state.has_verbs.then_some(long);
        Box::pin(async move { told })
    }

    fn available<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<u64, RemoteError>>> {
        let permits = limit(&ask).permits[ask.plan];
        self.verb(move |state| permits - state.taken.get(&key(&ask)).copied().unwrap_or(0))
    }

    fn banned_for<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<Option<Duration>, RemoteError>>> {
        self.verb(move |state| {
            let mut banned = state.banned.iter();
            banned.find_map(|(known, long)| (*known == key(&ask)).then_some(*long))
        })
    }

    fn reset<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<(), RemoteError>>> {
        self.verb(move |state| {
            state.taken.remove(&key(&ask));
            state.banned.retain(|(known, _)| *known != key(&ask));
        })
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
            self.store.wait(0).await;
            let mut state = self.store.state();
            state.calls.push(format!("settle {actual:?}"));
            if state.is_down {
                return Err("the store is down".into());
            }
            let mut settled = Settled::default();
            for ((key, info), actual) in self.taken.into_iter().zip(actual) {
                let taken = state.taken.entry(key).or_default();
                *taken = *taken - info.n() + actual;
                settled.returned += info.n().saturating_sub(actual);
                settled.charged += actual.saturating_sub(info.n());
            }
            Ok(settled)
        })
    }

    fn undo(self: Box<Self>) -> RemoteFuture<'static, Result<u64, RemoteError>> {
        Box::pin(async move {
            self.store.wait(0).await;
            let mut state = self.store.state();
            state.calls.push("undo".to_owned());
            if state.is_down {
                return Err("the store is down".into());
            }
            let mut back = 0;
            for (key, info) in self.taken {
                *state.taken.entry(key).or_default() -= info.n();
                back += info.n();
            }
            Ok(back)
        })
    }
}
