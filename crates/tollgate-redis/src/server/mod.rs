//! A server as limits use it: a client, a budget for each decision, and a breaker.

pub(crate) mod call;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::task::consume_budget;
use tokio::time::{Instant, timeout};
use tollgate::Tick;

use crate::client::{Client, Reply, Waiting};
use crate::outage::report::{self, Times};
use crate::outage::{Breaker, Decider, Others, Outage, OutageEvent, Pass, Stats, Unavailable};
use crate::remembered::{Denials, ROOM};
use crate::script::packed::BadReply;
use crate::server::call::Call;

/// A server that decides limits, shared by all limits on it.
///
/// Each call has a budget. If the server fails or does not answer in time, the limit's
/// [fallback](crate::Fallback) decides this call. An outage begins if a client can't connect, after
/// three calls in a row without an answer, or when at least 5 and at least half of the calls of the
/// last second have failed. In an outage fallbacks decide at once, and one call in each interval
/// asks the server as a probe. The first probe that is answered ends the outage. A failed call is
/// never sent again.
///
/// In a cluster, each node has its own outages: while one does not answer, only its keys fall back.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate_redis::client::connect_lazily;
/// use tollgate_redis::RedisServer;
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let client = connect_lazily("redis://127.0.0.1/")?;
/// let server = RedisServer::new(client)
///     .with_budget(Duration::from_millis(20))
///     .on_outage(|event| eprintln!("{event}"));
/// let server = Arc::new(server);
/// # Ok(())
/// # }
/// ```
///
/// Calls need a tokio runtime with its timer.
pub struct RedisServer<C> {
    client: C,
    budget: Duration,
    probe_every: Duration,
    listener: Option<Box<Listener>>,
    times: Times,
    start: Instant,
    /// The denials that limits remember, once there is one that does. `None` without the memory.
    pub(crate) denials: OnceLock<Option<Arc<Denials>>>,
    /// Never held across an await.
    state: Mutex<State>,
}

type Listener = dyn Fn(&OutageEvent) + Send + Sync;

struct State {
    /// One for each node that was asked and has keys.
    nodes: BTreeMap<u64, Breaker>,
    /// The counts of nodes that have no keys any more.
    of_others: Stats,
    /// The number of the latest outage.
    latest: u64,
    /// For intervals that differ between processes.
    random: u64,
}

impl State {
    fn node(&mut self, node: u64) -> &mut Breaker {
        self.nodes.entry(node).or_insert_with(|| Breaker::of(node))
    }

    fn is_down(&self) -> bool {
        self.nodes.values().any(Breaker::is_down)
    }

    fn stats(&self) -> Stats {
        let stats = self.nodes.values().map(|breaker| breaker.stats);
        stats.fold(self.of_others, Stats::plus)
    }
}

impl<C> RedisServer<C> {
    /// Creates a server from a client, with a budget of 50 ms and a probe every 500 ms of an
    /// outage.
    #[must_use]
    pub fn new(client: C) -> Self {
        Self {
            client,
            budget: Duration::from_millis(50),
            probe_every: Duration::from_millis(500),
            listener: None,
            times: Times::default(),
            start: Instant::now(),
            denials: OnceLock::new(),
            state: Mutex::new(State {
                nodes: BTreeMap::new(),
                of_others: Stats::default(),
                latest: 0,
                random: RandomState::new().hash_one(0) | 1,
            }),
        }
    }

    /// Sets how long a call may take. The fallback decides a call that takes longer, and three in a
    /// row begin an outage.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_redis::RedisServer;
    ///
    /// let server = RedisServer::new(()).with_budget(Duration::from_millis(20));
    /// assert!(format!("{server:?}").contains("20ms"));
    /// ```
    #[must_use]
    pub fn with_budget(self, budget: Duration) -> Self {
        Self { budget, ..self }
    }

    /// Sets how often a call probes the server in an outage. The intervals vary between half of
    /// this and all of it, so that the probes of many processes spread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_redis::RedisServer;
    ///
    /// let server = RedisServer::new(()).with_probe_every(Duration::from_secs(2));
    /// assert!(format!("{server:?}").contains("2s"));
    /// ```
    #[must_use]
    pub fn with_probe_every(self, probe_every: Duration) -> Self {
        Self {
            probe_every,
            ..self
        }
    }

    /// Sets a function that is called once at the beginning of each outage, and once at its end.
    /// It should not block: a decision waits for it.
    ///
    /// ```
    /// use tollgate_redis::RedisServer;
    ///
    /// let server = RedisServer::new(()).on_outage(|event| eprintln!("{event}"));
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn on_outage(self, listener: impl Fn(&OutageEvent) + Send + Sync + 'static) -> Self {
        Self {
            listener: Some(Box::new(listener)),
            ..self
        }
    }

    /// Returns how many decisions were made, by the server and by fallbacks, since it was created.
    ///
    /// ```
    /// use tollgate_redis::RedisServer;
    ///
    /// assert_eq!(RedisServer::new(()).stats().outages, 0);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let denials = self.denials.get().and_then(Option::as_ref);
        Stats {
            remembered: denials.map_or(0, |denials| denials.answered()),
            ..self.state().stats()
        }
    }

    /// Returns whether there is an outage. In a cluster, the outage of a single node counts.
    ///
    /// ```
    /// use tollgate_redis::RedisServer;
    ///
    /// assert!(!RedisServer::new(()).is_down());
    /// ```
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.state().is_down()
    }

    /// Counts a decision of a fallback.
    pub(crate) fn count(&self, decider: Decider, outage: Outage) {
        self.state().node(outage.node).stats.count(decider);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the table of denials that limits remember.
    pub(crate) fn denials(&self) -> Option<&Arc<Denials>> {
        let make = || Denials::new(ROOM).ok().map(Arc::new);
        self.denials.get_or_init(make).as_ref()
    }

    /// Returns the time since the start, for denials that are remembered.
    pub(crate) fn tick(&self) -> Tick {
        let nanos = self.start.elapsed().as_nanos();
        Tick::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the microseconds since the start.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn tell(&self, event: Option<OutageEvent>) {
        let Some(event) = event else {
            return;
        };
        match &event {
            OutageEvent::Began { why } => report::began(why),
            OutageEvent::Ended { lasted, fallbacks } => report::ended(*lasted, *fallbacks),
        }
        if let Some(listener) = &self.listener {
            listener(&event);
        }
    }

    fn interval(&self, state: &mut State) -> u64 {
        // xorshift64.
        state.random ^= state.random << 13;
        state.random ^= state.random >> 7;
        state.random ^= state.random << 17;
        let whole = u64::try_from(self.probe_every.as_micros()).unwrap_or(u64::MAX);
        let half = whole / 2;
        whole - half + state.random.checked_rem(half).unwrap_or(0)
    }

    fn failed(&self, node: u64, pass: Pass, why: &Unavailable) -> Outage {
        let now = self.now();
        let (event, outage) = {
            let mut state = self.state();
            let interval = self.interval(&mut state);
            let mut others = state.nodes.values().filter(|other| other.node() != node);
            let is_down = others.any(Breaker::is_down);
            let State { nodes, latest, .. } = &mut *state;
            let others = Others { latest, is_down };
            let breaker = nodes.entry(node).or_insert_with(|| Breaker::of(node));
            let event = breaker.failed(pass, why, now, interval, others);
            (event, breaker.outage(now, interval))
        };
        self.tell(event);
        outage
    }
}

impl<C: Client> RedisServer<C> {
    fn answered(&self, node: u64, pass: Pass, granted: bool) {
        let now = self.now();
        let mut ended = Vec::new();
        {
            let mut state = self.state();
            ended.extend(state.node(node).answered(pass, now, granted));
            // Other nodes have taken over the keys of these nodes.
            let down = state.nodes.values_mut().filter(|other| other.is_down());
            let left = down.filter(|other| !self.client.has_keys(other.node()));
            ended.extend(left.filter_map(|other| other.end(now)));
        }
        for event in ended {
            self.tell(Some(event));
        }
    }

    /// Forgets the nodes without keys. Otherwise their number would grow for ever. Returns the ends
    /// of their outages.
    fn forget(&self, state: &mut State, now: u64) -> Vec<OutageEvent> {
        let nodes = state.nodes.keys().copied();
        let gone: Vec<_> = nodes.filter(|node| !self.client.has_keys(*node)).collect();
        let mut ended = Vec::new();
        for mut breaker in gone.iter().filter_map(|node| state.nodes.remove(node)) {
            ended.extend(breaker.end(now));
            state.of_others = state.of_others.plus(breaker.stats);
        }
        ended
    }

    /// Returns the outage of a key's node, as a fallback sees it, or a failure without one.
    pub(crate) fn outage(&self, key: &[u8]) -> Outage {
        let (now, node) = (self.now(), self.client.node_of(&[key.to_vec()]));
        let mut state = self.state();
        let interval = self.interval(&mut state);
        state.node(node).outage(now, interval)
    }

    /// Notes that permits of these keys stay taken although no caller has them.
    pub(crate) fn lost(&self, keys: &[Vec<u8>]) {
        let node = self.client.node_of(keys);
        self.state().node(node).lost();
    }

    /// Sends a call, if there is no outage or a probe is due, and reads the reply.
    pub(crate) async fn call<T>(
        &self,
        call: &Call,
        read: impl FnOnce(&Reply) -> Result<T, BadReply>,
    ) -> Result<T, (Unavailable, Outage)> {
        self.send(call, read, |_| false, Breaker::ask).await
    }

    /// As [`call`](Self::call), but also in an outage, as a probe: a guard that waited for the next
    /// probe would lose its slots.
    pub(crate) async fn call_anyway<T>(
        &self,
        call: &Call,
        read: impl FnOnce(&Reply) -> Result<T, BadReply>,
    ) -> Result<T, (Unavailable, Outage)> {
        self.send(call, read, |_| false, Breaker::ask_anyway).await
    }

    /// As [`call`](Self::call). `granted` says whether the server has granted permits: then its
    /// next outage has a bound of its own.
    pub(crate) async fn call_to_take<T>(
        &self,
        call: &Call,
        read: impl FnOnce(&Reply) -> Result<T, BadReply>,
        granted: impl FnOnce(&T) -> bool,
    ) -> Result<T, (Unavailable, Outage)> {
        self.send(call, read, granted, Breaker::ask).await
    }

    async fn send<T>(
        &self,
        call: &Call,
        read: impl FnOnce(&Reply) -> Result<T, BadReply>,
        granted: impl FnOnce(&T) -> bool,
        ask: fn(&mut Breaker, u64, u64) -> Result<Pass, Outage>,
    ) -> Result<T, (Unavailable, Outage)> {
        let now = self.now();
        let node = self.client.node_of(&call.keys);
        let (asked, ended) = {
            let mut state = self.state();
            let interval = self.interval(&mut state);
            let ended = match state.nodes.contains_key(&node) {
                true => Vec::new(),
                false => self.forget(&mut state, now),
            };
            (ask(state.node(node), now, interval), ended)
        };
        for event in ended {
            self.tell(Some(event));
        }
        let pass = match asked {
            Ok(pass) => pass,
            Err(outage) => {
                // Fallbacks wait for nothing. Without this, callers in a loop would starve the task
                // that reads the server's answers, and no probe would succeed.
                consume_budget().await;
                let retry_after = outage.probe_in;
                return Err((Unavailable::Outage { retry_after }, outage));
            }
        };
        let waiting = Waiting::new(self.budget);
        let in_flight = InFlight(&self.state, node, &waiting);
        let (script, sent_at) = (call.script, Instant::now());
        let sent = script.run(&self.client, &call.keys, &call.args, &waiting);
        let answer = timeout(self.budget, sent).await;
        std::mem::forget(in_flight);
        self.times
            .took(sent_at.elapsed(), matches!(answer, Ok(Ok(_))));
        let read = match answer {
            Ok(Ok(reply)) => read(&reply).map_err(|BadReply| Unavailable::BadReply),
            Ok(Err(error)) => Err(Unavailable::Client(error)),
            Err(_) if waiting.is_unsent() => Err(Unavailable::NotConnected {
                budget: self.budget,
            }),
            Err(_) => Err(Unavailable::TimedOut {
                budget: self.budget,
            }),
        };
        match read {
            Ok(read) => {
                self.answered(node, pass, granted(&read));
                Ok(read)
            }
            Err(why) => {
                let outage = self.failed(node, pass, &why);
                Err((why, outage))
            }
        }
    }
}

/// A call without an answer. If its caller drops it, it counts as lost, unless it was not sent.
struct InFlight<'a>(&'a Mutex<State>, u64, &'a Waiting);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.node(self.1).dropped(!self.2.is_unsent());
    }
}

impl<C> fmt::Debug for RedisServer<C> {
    /// Does not show the client, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("RedisServer")
            .field("budget", &self.budget)
            .field("probe_every", &self.probe_every)
            .field("is_down", &state.is_down())
            .field("stats", &state.stats())
            .finish_non_exhaustive()
    }
}
