//! Limits on Redis or Valkey.

use std::fmt::{self, Display, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate::Denied;
use tollgate_http::{Ambiguous, Cause, LimitState, Refusal};
use tollgate_redis::client::Client;
use tollgate_redis::{Decider, Denial, EnterError, Grant as Permits, RedisGuard, RedisLimiter};

use crate::admission::{Admission, Admit, Decide, Grant};
use crate::answered::Ended;
use crate::costs::{Costs, HasCosts};
use crate::deciding::{Deciding, Undo, spawn};
use crate::head::Head;
use crate::key::{HasKey, RequestKey};
use crate::rate::{ambiguous, may_wait, without_key};
use crate::report::Decided;
use crate::settings::Settings;

/// The limit of a [`RateLimitLayer`](crate::RateLimitLayer) that a server of Redis or Valkey
/// decides.
pub struct ByRedis<C, K> {
    limiter: Arc<RedisLimiter<C>>,
    key: Arc<K>,
    costs: Costs,
}

impl<C, K> ByRedis<C, K> {
    pub(crate) fn new(limiter: Arc<RedisLimiter<C>>, key: K) -> Self {
        Self {
            limiter,
            key: Arc::new(key),
            costs: Costs::default(),
        }
    }
}

impl<C, K> Clone for ByRedis<C, K> {
    fn clone(&self) -> Self {
        Self {
            limiter: Arc::clone(&self.limiter),
            key: Arc::clone(&self.key),
            costs: self.costs.clone(),
        }
    }
}

impl<C, K> fmt::Debug for ByRedis<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByRedis").field(&self.limiter).finish()
    }
}

impl<C, K> HasCosts for ByRedis<C, K> {
    fn costs(&mut self) -> &mut Costs {
        &mut self.costs
    }
}

impl<C, K> HasKey for ByRedis<C, K> {}

/// The key of requests without a key. It is no UTF-8, so no key has the same bytes.
const NO_KEY: &[u8] = b"\xff";

/// One key of a limit. It keeps the limit alive.
struct Key<C> {
    limiter: Arc<RedisLimiter<C>>,
    key: Vec<u8>,
}

/// What the server or the fallback granted.
enum Held {
    Permits(Permits),
    /// A slot of a concurrency limit. Its lease is renewed until it is dropped.
    Slot(RedisGuard),
}

impl Held {
    const fn decider(&self) -> Decider {
        match self {
            Self::Permits(permits) => permits.decider(),
            Self::Slot(slot) => slot.decider(),
        }
    }
}

impl<C: Client + 'static> Key<C> {
    /// Takes a slot of a concurrency, or permits of any other limit.
    async fn take(&self, n: u64) -> Result<Held, Denial> {
        let key = self.limiter.key(&self.key);
        match key.try_enter().await {
            Ok(slot) => Ok(Held::Slot(slot)),
            Err(EnterError::Denied(denial)) => Err(denial),
            // The limit has no slots.
            Err(_) => key.try_acquire_n(n).await.map(Held::Permits),
        }
    }

    /// Returns what fields say of the limit.
    fn state<'a>(&self, name: &'a str, costs: &Costs) -> LimitState<'a> {
        let limit = self.limiter.limit();
        match limit.quota() {
            Some(quota) => LimitState::of_rate(name, quota).unit(costs.unit),
            None => LimitState::of_concurrency(name, limit.permits()),
        }
    }
}

/// What was decided about a request.
pub struct RedisOutcome<C: Client + 'static> {
    decided: Result<Held, Denial>,
    key: Key<C>,
}

impl<C: Client + 'static> Undo for RedisOutcome<C> {
    async fn undo(self) {
        if let Ok(Held::Permits(permits)) = self.decided {
            // If the server does not answer, its grant stays as it is.
            let _ = self.key.limiter.key(&self.key.key).undo(permits).await;
        }
    }
}

impl<C: Client + 'static> fmt::Debug for RedisOutcome<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_granted = self.decided.is_ok();
        f.debug_tuple("RedisOutcome").field(&is_granted).finish()
    }
}

impl<C: Client + 'static, K: RequestKey> ByRedis<C, K> {
    fn ask(&self, key: Vec<u8>, n: u64) -> Deciding<RedisOutcome<C>> {
        let limiter = Arc::clone(&self.limiter);
        Deciding::new(async move {
            let key = Key { limiter, key };
            let decided = key.take(n).await;
            RedisOutcome { decided, key }
        })
    }

    /// Turns a grant into what the layer does.
    fn granted(&self, held: Held, key: Key<C>, settings: &Settings, has_place: bool) -> Admit<Self>
    where
        Self: Decide<Grant = Box<RedisGrant<C>>>,
    {
        let (name, decider, report) = (&*settings.name, held.decider(), settings.report());
        report.allowed();
        if let Some(fallback) = fallback(decider) {
            report.fallback(fallback, Decided::Allowed);
        }
        // A fallback that counts nothing does not know what is left. A process with leases knows
        // only what it holds.
        let is_known = matches!(decider, Decider::Server | Decider::Local);
        let state = is_known.then(|| match (key.state(name, &self.costs), &held) {
            (state, Held::Permits(permits)) => state.granted(permits.granted().info()),
            (state, Held::Slot(slot)) => state.untouched(1, slot.remaining()),
        });
        let values = settings.answers.values(state.into_iter());
        let delay = match &held {
            Held::Permits(permits) => permits.granted().delay(),
            Held::Slot(_) => Duration::ZERO,
        };
        let grant = Box::new(RedisGrant {
            most: self.costs.most(|| key.limiter.limit().quota()),
            held,
            key,
            began: Instant::now(),
        });
        if delay.is_zero() {
            return match self.needs_end(&grant) {
                true => Admit::Granted(grant, values),
                false => Admit::said(values),
            };
        }
        if !has_place && !settings.is_shadow {
            report.waited();
        }
        Admit::granted(grant, values, delay, settings)
    }

    /// Refuses a request.
    fn refused(
        &self,
        denial: Denial,
        key: &Key<C>,
        head: Head<'_>,
        settings: &Settings,
    ) -> Admit<Self>
    where
        Self: Decide,
    {
        let (name, decider, denied) = (&*settings.name, denial.decider(), denial.denied());
        let refusal = match (denial.is_unavailable(), denied.retry_after()) {
            (false, _) => Refusal::of_denied(&denied),
            (true, None) => Refusal::new(Cause::Unavailable),
            (true, Some(wait)) => Refusal::new(Cause::Unavailable).retry_after(wait),
        };
        let is_counted = !matches!(decider, Decider::Closed | Decider::Open);
        // What a smaller request would find is not known.
        let state = is_counted.then(|| key.state(name, &self.costs).denied(&denied, 0));
        let refusal = refusal.rule(name).limits(state.as_slice());
        let refused = settings.refuse(head, &refusal);
        if let Some(fallback) = fallback(decider).filter(|_| !settings.is_shadow) {
            settings.report().fallback(fallback, Decided::Denied);
        }
        refused
    }
}

impl<C, K> Admission for ByRedis<C, K>
where
    C: Client + 'static,
    K: RequestKey,
    for<'r> K::Key<'r>: Display,
{
}

impl<C, K> Decide for ByRedis<C, K>
where
    C: Client + 'static,
    K: RequestKey,
    for<'r> K::Key<'r>: Display,
{
    type Grant = Box<RedisGrant<C>>;
    type Outcome = RedisOutcome<C>;
    type Pending = Deciding<RedisOutcome<C>>;

    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        _: Option<Duration>,
        _: bool,
    ) -> Admit<Self> {
        let facts = settings.facts(head);
        let ask = |key| Admit::Pending(self.ask(key, self.costs.of(&facts)));
        match self.key.key(&facts) {
            Ok(key) => match key.and_then(|key| text_of(&key)) {
                Some(key) => ask(key.into_bytes()),
                None => without_key(head, settings, || ask(NO_KEY.to_vec())),
            },
            Err(Ambiguous) => ambiguous(head, settings),
        }
    }

    fn go_on(
        &self,
        outcome: RedisOutcome<C>,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        let RedisOutcome { decided, key } = outcome;
        let denial = match decided {
            Ok(held) => return self.granted(held, key, settings, has_place),
            Err(denial) => denial,
        };
        if let Denied::Later { retry_after, .. } = denial.denied() {
            let waits = may_wait(&denial.denied(), patience) && !denial.is_unavailable();
            if waits && has_place {
                return Admit::Retry(retry_after, None);
            }
            if let Some(place) = settings.place().filter(|_| waits) {
                settings.report().waited();
                return Admit::Retry(retry_after, Some(place));
            }
        }
        self.refused(denial, &key, head, settings)
    }

    fn needs_end(&self, grant: &Self::Grant) -> bool {
        self.costs.settles() || matches!(grant.held, Held::Slot(_))
    }

    fn reads_headers(&self, grant: &Self::Grant, settings: &Settings) -> bool {
        matches!(grant.held, Held::Permits(_)) && self.costs.reads_headers(settings)
    }

    fn end(&self, grant: Self::Grant, mut ended: Ended<'_>, settings: &Settings) {
        let grant = *grant;
        let Held::Permits(permits) = grant.held else {
            return;
        };
        ended.elapsed = grant.began.elapsed();
        ended.taken = permits.granted().n();
        let actual = self.costs.actual(&ended, grant.most, settings);
        if actual != ended.taken {
            let Key { limiter, key } = grant.key;
            spawn(async move {
                // If the server does not answer, its grant stays as it is.
                let _ = limiter.key(key).settle(permits, actual).await;
            });
        }
    }
}

/// Returns the name of the fallback that decided, if one did.
const fn fallback(decider: Decider) -> Option<&'static str> {
    match decider {
        Decider::Closed => Some("closed"),
        Decider::Open => Some("open"),
        Decider::Local => Some("local"),
        _ => None,
    }
}

/// Returns the text of a key. `None` if it has none.
fn text_of(key: &impl Display) -> Option<String> {
    let mut text = String::new();
    write!(text, "{key}").is_ok().then_some(text)
}

/// What a request holds that the server or the fallback granted.
pub struct RedisGrant<C> {
    held: Held,
    key: Key<C>,
    /// The most that is settled.
    most: u64,
    began: Instant,
}

impl<C> fmt::Debug for RedisGrant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decider = self.held.decider();
        f.debug_tuple("RedisGrant").field(&decider).finish()
    }
}

impl<C: Client + 'static> Grant for Box<RedisGrant<C>> {
    fn cancel(self) {
        let this = *self;
        let decided = Ok(this.held);
        spawn(
            RedisOutcome {
                decided,
                key: this.key,
            }
            .undo(),
        );
    }
}
