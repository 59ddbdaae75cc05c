//! The limit of a rule, for all its keys.

mod hash;
mod own;
mod remote;
mod spec;

use std::fmt;

use tollgate::clock::{Clock, UtcClock};
use tollgate::compose::{Exempt, Held, Member, OrElse, Visitor};
use tollgate::keyed::{Key, KeyedConcurrency};
use tollgate::outcome::Charged;
use tollgate::store::Place;
use tollgate::{Adjustable, AnyAlgorithm, Concurrency, Denied, Granted, Keyed, Tick};

pub use hash::Hashed;
pub(crate) use hash::KeyHash;
pub use own::{DynLimit, KeyRef, KeyedLimit, OwnLimit};
pub(crate) use remote::Remote;
pub use remote::{
    FallbackKind, RemoteAsk, RemoteDenied, RemoteError, RemoteFuture, RemoteGrants, RemoteLimit,
    RemoteRefusal, RemoteStore,
};
#[cfg(feature = "redis")]
pub(crate) use spec::ALGORITHMS;
pub use spec::LimitSpec;
pub(crate) use spec::{Fixed, Spec, config_message, is_concurrency, limits_with_state};

/// What a policy needs of its clock.
pub trait PolicyClock: Clock + UtcClock + Clone + fmt::Debug + Send + Sync + 'static {}

impl<C: Clock + UtcClock + Clone + fmt::Debug + Send + Sync + 'static> PolicyClock for C {}

/// The limits of single keys: the hashes of the keys, and what their texts say.
pub(crate) type Overrides = Vec<(u64, Spec)>;

/// Returns what a key alone has. The list is in the order of the hashes.
pub(crate) fn own_of<T>(overrides: &[(u64, T)], hash: u64) -> Option<&T> {
    let found = overrides.binary_search_by_key(&hash, |(hash, _)| *hash);
    overrides.get(found.ok()?).map(|(_, own)| own)
}

/// A table of keys.
pub(crate) type Table<C> = Keyed<AnyAlgorithm, C, Hashed>;

/// The limit of a rule, for all its keys.
#[expect(clippy::large_enum_variant, reason = "each is in an `Arc` of its own")]
pub(crate) enum RuleLimit<C> {
    /// A rate for each key.
    Table(Table<C>),
    /// One rate for all requests.
    Single(Adjustable<AnyAlgorithm, C>),
    /// A concurrency for each key; one for each plan.
    Slots(Vec<KeyedConcurrency<Hashed>>),
    /// One concurrency for all requests; one for each plan.
    OneSlots(Vec<Concurrency>),
    /// A registered algorithm, or a limit of a registered store.
    Own(Box<dyn OwnLimit<C>>),
    /// A limit of a store that decides asynchronously.
    Remote(Remote),
}

impl<C> RuleLimit<C> {
    /// Returns the table, if it is a rate for each key.
    pub(crate) fn table(&self) -> Option<&Table<C>> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns whether it is a rate of this process, which holds nothing while a request is served.
    /// Limits of stores and of the program may.
    pub(crate) fn is_rate(&self) -> bool {
        match self {
            Self::Table(_) | Self::Single(_) => true,
            Self::Slots(_) | Self::OneSlots(_) | Self::Own(_) | Self::Remote(_) => false,
        }
    }
}

/// Grants a request that a limit on trial denies. It has an address that does not change.
pub(crate) static EXEMPT: Exempt = Exempt;

/// Visits a limit, which can be on trial.
#[inline(always)]
fn visit<C, M: Member<C>, V: Visitor<C>>(limit: &M, trial: bool, visitor: V) -> V::Output {
    match trial {
        false => visitor.visit(limit, None),
        true => visitor.visit(&OrElse::new(limit, &EXEMPT), None),
    }
}

/// Visits a limit once, through a trait object.
struct Once<V, O> {
    visitor: Option<V>,
    output: Option<O>,
}

impl<C: Clock + fmt::Debug + Send + Sync> RuleLimit<C> {
    /// Visits the limit of a key. `trial` says whether the limit only reports what it would decide.
    /// Returns `None` if there is no such plan.
    #[inline]
    pub(crate) fn visit<V: Visitor<C>>(
        &self,
        key: KeyRef<'_>,
        plan: usize,
        trial: bool,
        visitor: V,
    ) -> Option<V::Output> {
        match self {
            Self::Table(table) => {
                let key = table.key(&KeyHash(key.hash)).with_plan(plan);
                Some(visit(&key, trial, visitor))
            }
            Self::Single(limiter) => Some(visit(limiter, trial, visitor)),
            Self::Slots(plans) => {
                let key = plans.get(plan)?.key(&KeyHash(key.hash));
                Some(visit(&key, trial, visitor))
            }
            Self::OneSlots(plans) => Some(visit(plans.get(plan)?, trial, visitor)),
            Self::Own(limit) => {
                let mut once = Once {
                    visitor: Some(visitor),
                    output: None,
                };
                limit.with_key(key, plan, &mut |limit| {
                    if let Some(visitor) = once.visitor.take() {
                        once.output = Some(visit(&limit, trial, visitor));
                    }
                });
                once.output
            }
            // Only `decide_async` asks it.
            Self::Remote(_) => None,
        }
    }

    /// Returns whether a request weighs 1 under a plan, whatever it costs.
    pub(crate) fn counts_requests(&self, plan: usize) -> bool {
        match self {
            Self::Slots(_) | Self::OneSlots(_) => true,
            Self::Remote(remote) => remote.concurrency(plan).is_some(),
            Self::Table(_) | Self::Single(_) | Self::Own(_) => false,
        }
    }

    /// Returns whether denials of keys can ban them.
    pub(crate) const fn can_ban(&self) -> bool {
        matches!(self, Self::Table(_) | Self::Own(_) | Self::Remote(_))
    }
}

impl<C> fmt::Debug for RuleLimit<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table(_) => "Table",
            Self::Single(_) => "Single",
            Self::Slots(_) => "Slots",
            Self::OneSlots(_) => "OneSlots",
            Self::Own(_) => "Own",
            Self::Remote(_) => "Remote",
        })
    }
}

/// Takes nothing, and denies a key while it is banned. Without a key, it only lends its clock to a
/// composition whose limits have none, such as a concurrency alone.
pub(crate) struct Gate<'b, C> {
    pub(crate) clock: &'b C,
    pub(crate) banned: Option<Key<&'b Table<C>>>,
}

impl<C: Clock> Member<C> for Gate<'_, C> {
    fn clock(&self) -> Option<&C> {
        Some(self.clock)
    }

    fn place(&self) -> Place {
        let banned = self.banned.as_ref();
        banned.map_or_else(|| Place::of(self.clock), Member::place)
    }

    fn check(&self, _: u64, now: Tick) -> Result<(), Denied> {
        self.banned.as_ref().map_or(Ok(()), |key| key.check(1, now))
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        self.check(n, now)?;
        Ok(Granted::new(n, now).into())
    }

    fn available_at(&self, now: Tick) -> u64 {
        self.check(1, now).map_or(0, |()| u64::MAX)
    }

    fn give_back(&self, held: Held, _: Tick) -> u64 {
        held.granted.n()
    }

    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        Charged::new(n, now)
    }
}
