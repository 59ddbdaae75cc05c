//! The leases of a limit in this process: what spenders call, and the task that asks the server.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, process};

use foldhash::fast::SeedableRandomState;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::client::Client;
use crate::lease::allowance::Own;
use crate::lease::hot::{GrantedAfter, Hot, HotKeys, Said};
use crate::lease::inside::Inside;
use crate::lease::keeper::{Keeper, Send};
use crate::lease::options::Leasing;
use crate::lease::stats::{Counts, LeaseStats};
use crate::lease::terms::Terms;
use crate::lease::time::Time;
use crate::limit::kind::Kind;
use crate::server::RedisServer;
use crate::server::call::{self, Leased, Message, Part};

/// How long a key waits after a message without an answer, if there is no outage.
const PAUSE: Duration = Duration::from_millis(10);

/// A key and the answer about it, or for how long nothing is to be asked, and how often a key was
/// reset before the message.
type Answered = (Arc<Hot>, Result<Leased, u64>, u64);

/// The leases of one limit.
pub(crate) struct Leases<C> {
    node: Arc<Node<C>>,
    /// Starts the task, which only a client without borrows can have.
    start: fn(&Handle, &Arc<Node<C>>),
}

struct Node<C> {
    server: Arc<RedisServer<C>>,
    kind: Kind,
    leasing: Leasing,
    terms: Terms,
    /// What the server calls this process, but for the process's id: a process that is forked off
    /// has the same name here.
    name: u64,
    time: Time,
    keys: HotKeys,
    /// If the process has an allowance.
    own: Option<Own>,
    /// How often a key was reset. What was asked before may say that it is banned.
    resets: Mutex<u64>,
    counts: Counts,
    answers: Mutex<Vec<Answered>>,
    wake: Notify,
    is_closed: AtomicBool,
    is_running: AtomicBool,
}

impl<C: Client + 'static> Leases<C> {
    pub(crate) fn new(
        server: Arc<RedisServer<C>>,
        kind: Kind,
        leasing: Leasing,
        terms: Terms,
        time: Time,
        own: Option<Own>,
    ) -> Self {
        Self {
            node: Arc::new(Node {
                server,
                kind,
                leasing,
                terms,
                name: RandomState::new().hash_one(0),
                time,
                keys: HotKeys::new(leasing.keys(), SeedableRandomState::random())
                    .with_slots(terms.slots_ns),
                own,
                resets: Mutex::default(),
                counts: Counts::default(),
                answers: Mutex::default(),
                wake: Notify::new(),
                is_closed: AtomicBool::new(false),
                is_running: AtomicBool::new(false),
            }),
            start: |runtime, node| drop(runtime.spawn(run(Running(Arc::clone(node))))),
        }
    }
}

impl<C> Leases<C> {
    /// Takes permits that the process holds. Returns how many are left, and what finds the grant.
    /// If there are too few, [`decide`](Self::decide) says what to do.
    #[inline(always)]
    pub(crate) fn spend(&self, user: &[u8], n: u64) -> Option<(u64, GrantedAfter)> {
        let node = &*self.node;
        let spent = node.keys.with(user, |hot| {
            let (left, after, tells) = hot.spend(node.time.now_ns(), n)?;
            if tells {
                node.tell(hot);
            }
            Some((left, after))
        });
        spent.flatten()
    }

    /// Decides a request from what the process holds.
    pub(crate) fn decide(&self, user: &[u8], n: u64) -> Said {
        let node = &*self.node;
        let said = node.keys.with(user, |hot| {
            let now_ns = node.time.now_ns();
            let (said, tells) = hot.decide(now_ns, n, &node.terms, node.leasing.asks());
            if tells {
                node.tell(hot);
            }
            said
        });
        said.unwrap_or(Said::Ask)
    }

    /// Puts back permits of a grant that were not used, unless the server was told since that they
    /// are spent. Returns how many.
    pub(crate) fn put_back(&self, user: &[u8], n: u64, after: GrantedAfter) -> u64 {
        let now_ns = self.node.time.now_ns();
        let keys = &self.node.keys;
        let put = keys.with(user, |hot| hot.put_back(now_ns, n, after));
        put.unwrap_or(0)
    }

    /// Begins the lease of a grant's slots again. Returns the grant's new mark if it still has
    /// them.
    pub(crate) fn renew(&self, user: &[u8], n: u64, after: GrantedAfter) -> Option<GrantedAfter> {
        let now_ns = self.node.time.now_ns();
        let renewed = self.node.keys.with(user, |hot| {
            let pool = &hot.slots_of(after)?.pool;
            let generation = pool.renew(now_ns, after.generation, n)?;
            Some(GrantedAfter {
                generation,
                ..after
            })
        });
        renewed.flatten()
    }

    /// Takes a grant's slots over, for as long as they are in use, if the grant still has them.
    pub(crate) fn adopt(&self, user: &[u8], n: u64, after: GrantedAfter) -> Option<Inside> {
        let adopted = self.node.keys.with(user, |hot| {
            let is_adopted = hot.slots_of(after)?.pool.adopt(after.generation, n);
            is_adopted.then(|| Inside::new(Arc::clone(hot), self.node.time, n))
        });
        adopted.flatten()
    }

    /// Returns what the process grants without the server, if it has an allowance, and the tick.
    pub(crate) fn own(&self) -> Option<(&Own, u64)> {
        Some((self.node.own.as_ref()?, self.node.time.now_ns()))
    }

    /// Returns how often a key was reset.
    pub(crate) fn resets(&self) -> u64 {
        *self.node.resets()
    }

    /// Notes that the server says a key is banned, unless one was reset since it was asked.
    pub(crate) fn banned(&self, user: &[u8], left: Duration, resets: u64) {
        self.node.banned(user, left, resets);
    }

    pub(crate) fn stats(&self) -> LeaseStats {
        let node = &self.node;
        let held = node.keys.held(node.time.now_ns());
        LeaseStats {
            allowed: node.own.as_ref().map_or(0, Own::granted),
            ..node.counts.seen(held, node.keys.len())
        }
    }

    /// Returns whether the process holds `n` permits.
    pub(crate) fn holds(&self, user: &[u8], n: u64) -> bool {
        let now_ns = self.node.time.now_ns();
        let held = self.node.keys.with(user, |hot| hot.holding(now_ns).permits);
        held.is_some_and(|held| held >= n)
    }

    /// Takes out what the process holds of a key, which then counts as spent: the key is banned.
    pub(crate) fn drop_held(&self, user: &[u8]) {
        let (now_ns, message) = (self.node.time.now_ns(), self.node.keys.next_number());
        let keys = &self.node.keys;
        let dropped = keys.with(user, |hot| hot.withdraw(now_ns, 0, message));
        let (_, held, lapsed) = dropped.unwrap_or_default();
        self.node.counts.lapsed(held.saturating_add(lapsed));
    }

    /// Notes that the key was reset.
    pub(crate) fn was_reset(&self, user: &[u8]) {
        self.forget(user);
        let mut resets = self.node.resets();
        *resets = resets.saturating_add(1);
        if let Some((own, now_ns)) = self.own() {
            own.reset(user, now_ns);
        }
    }

    /// Asks again, because permits came back.
    pub(crate) fn forget(&self, user: &[u8]) {
        let _ = self.node.keys.with(user, |hot| {
            hot.forget();
            self.node.tell(hot);
        });
    }

    /// Notes that the server is asked about a key, or has denied it. The key gets a lease if this
    /// happens often.
    pub(crate) fn note(&self, user: &[u8], name: &[u8], is_denied: bool) {
        let node = &self.node;
        if !node.keys.is_getting_hot(user, is_denied) {
            return;
        }
        let hot = node.keys.add(user, name.to_vec());
        node.keys.tell(&hot);
        node.wake.notify_one();
        match Handle::try_current() {
            Ok(runtime) if !node.is_running.swap(true, Ordering::Relaxed) => {
                (self.start)(&runtime, node);
            }
            // The task runs already. (Without a runtime, no call could have been made.)
            _ => {}
        }
    }
}

impl<C> Node<C> {
    fn tell(&self, hot: &Arc<Hot>) {
        self.keys.tell(hot);
        self.wake.notify_one();
    }

    fn banned(&self, user: &[u8], left: Duration, resets: u64) {
        let now = self.resets();
        if let (Some(own), true) = (&self.own, *now == resets) {
            own.ban_for(user, self.time.now_ns(), left);
        }
    }

    fn resets(&self) -> MutexGuard<'_, u64> {
        self.resets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> Vec<Answered> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut *answers)
    }
}

/// Asks the server about all keys, until the limit is dropped.
async fn run<C: Client + 'static>(running: Running<C>) {
    let node = &running.0;
    let mut keeper = Keeper::new(node.terms);
    loop {
        let now_ns = node.time.now_ns();
        for (hot, mut answer, resets) in node.answers() {
            if let (Ok(leased), true) = (&mut answer, *node.resets() != resets) {
                // It may be of the time before the reset.
                (leased.ban, leased.wait, leased.turn) = (0, 0, 0);
            }
            keeper.answered(&node.keys, &node.counts, &hot, answer, now_ns);
        }
        let is_closed = node.is_closed.load(Ordering::Relaxed);
        if is_closed && node.terms.slots_ns.is_some() {
            // Guards outlive the limit, and are told when their slots are lost.
            keeper.wind_down();
            if !keeper.holds(now_ns) {
                return;
            }
        } else if is_closed {
            for send in keeper.closing(&node.keys, &node.counts, now_ns) {
                send_one(Arc::clone(node), send).await;
            }
            return;
        }
        for send in keeper.messages(&node.keys, &node.counts, now_ns) {
            drop(tokio::spawn(send_one(Arc::clone(node), send)));
        }
        let wait_ns = keeper.next_ns().saturating_sub(node.time.now_ns());
        // Either way, the keeper looks at everything again.
        let _ = timeout(Duration::from_nanos(wait_ns), node.wake.notified()).await;
    }
}

/// The task. It ends with its runtime, also if that ends before the task has begun. Then another
/// one can begin.
struct Running<C>(Arc<Node<C>>);

impl<C> Drop for Running<C> {
    fn drop(&mut self) {
        // What it knew of the keys is lost. Those that are busy get leases again.
        self.0.keys.clear();
        self.0.is_running.store(false, Ordering::Relaxed);
    }
}

async fn send_one<C: Client + 'static>(node: Arc<Node<C>>, send: Send) {
    let part = Part {
        key: &send.hot.name,
        kind: &node.kind,
        n: 0,
    };
    let message = Message {
        node: (node.name ^ u64::from(process::id())).to_le_bytes(),
        ask: send.ask,
        life: node.terms.life_ns / 1000,
    };
    let Some(call) = call::ask(part, &message) else {
        return;
    };
    let resets = *node.resets();
    let sending = Sending {
        node: &node,
        hot: Some(send.hot),
        resets,
    };
    let answer = node.server.call(&call, call::leased).await;
    if let (Ok(Leased { ban: ban @ 1.., .. }), Some(hot)) = (&answer, &sending.hot) {
        node.banned(&hot.user, Duration::from_micros(*ban), resets);
    }
    let answer = answer.map_err(|(_, outage)| {
        let pause = match outage.number {
            Some(_) => outage.probe_in.max(PAUSE),
            None => PAUSE,
        };
        u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX)
    });
    sending.answer(answer);
}

/// A message that is under way. If the client panics, the message has failed.
struct Sending<'a, C> {
    node: &'a Node<C>,
    hot: Option<Arc<Hot>>,
    resets: u64,
}

impl<C> Sending<'_, C> {
    fn answer(mut self, answer: Result<Leased, u64>) {
        self.push(answer);
    }

    fn push(&mut self, answer: Result<Leased, u64>) {
        let Some(hot) = self.hot.take() else {
            return;
        };
        let answers = self.node.answers.lock();
        let mut answers = answers.unwrap_or_else(PoisonError::into_inner);
        answers.push((hot, answer, self.resets));
        drop(answers);
        self.node.wake.notify_one();
    }
}

impl<C> Drop for Sending<'_, C> {
    fn drop(&mut self) {
        self.push(Err(1_000_000_000));
    }
}

impl<C> Drop for Leases<C> {
    fn drop(&mut self) {
        self.node.is_closed.store(true, Ordering::Relaxed);
        self.node.wake.notify_one();
    }
}

impl<C> fmt::Debug for Leases<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases")
            .field("leasing", &self.node.leasing)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
