//! Limits that a program registers: algorithms and stores of its own.

use std::fmt;
use std::num::NonZeroU64;

use tollgate::algorithm::{Algorithm, Debt, GiveBack};
use tollgate::clock::Clock;
use tollgate::compose::{Held, Member};
use tollgate::outcome::Settled;
use tollgate::store::Place;
use tollgate::{Denied, Granted, Keyed, Tick};

use super::hash::{Hashed, KeyHash};

/// A key of a rule: its bytes, and a hash of them.
///
/// The parts of a key are encoded so that different keys have different bytes. The hash is the same
/// for all rules of a policy.
#[derive(Clone, Copy)]
pub struct KeyRef<'k> {
    pub(crate) bytes: &'k [u8],
    pub(crate) hash: u64,
}

impl<'k> KeyRef<'k> {
    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'k [u8] {
        self.bytes
    }

    /// Returns the hash. It depends on the policy's seed, which is random.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }
}

impl fmt::Debug for KeyRef<'_> {
    /// Does not show the bytes: they have what a client sent, such as its API key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRef")
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// A limit of a program's own: a value that decides about keys.
///
/// [`PolicyBuilder::limit`](crate::PolicyBuilder::limit) registers it by a name. It has its own
/// locks or atomics. A request asks all of its limits, and takes from all or none: what a limit
/// granted is undone if another one denies.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
///
/// use tollgate::{Denied, Tick};
/// use tollgate_policy::{KeyRef, KeyedLimit, Policy};
///
/// /// So many permits for each key, which never come back by themselves.
/// #[derive(Debug)]
/// struct Budget(u64, Mutex<HashMap<Vec<u8>, u64>>);
///
/// impl Budget {
///     fn change(&self, key: KeyRef<'_>, by: impl Fn(u64) -> Option<u64>) -> Option<u64> {
///         let mut keys = self.1.lock().unwrap();
///         let left = keys.entry(key.bytes().to_vec()).or_insert(self.0);
///         *left = by(*left)?;
///         Some(*left)
///     }
/// }
///
/// impl KeyedLimit for Budget {
///     fn take(&self, key: KeyRef<'_>, n: u64, _: Tick) -> Result<u64, Denied> {
///         self.change(key, |left| left.checked_sub(n)).ok_or(Denied::busy(n))
///     }
///     fn undo(&self, key: KeyRef<'_>, n: u64, _: Tick) -> u64 {
///         self.change(key, |left| Some(left + n)).map_or(0, |_| n)
///     }
/// }
///
/// let builder = Policy::builder().limit("budget", |spec| {
///     let permits = spec.limits[0].parse().map_err(|_| "must be a number of permits")?;
///     Ok(Box::new(Budget(permits, Mutex::default())))
/// });
/// let policy = builder.build_toml("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'budget 2'")?;
/// let ann = [("user", "ann")];
/// assert_eq!(policy.decide(&ann).remaining(), Some(1));
/// assert_eq!(policy.decide(&ann).undo(), 1);
/// assert_eq!(policy.decide(&ann).remaining(), Some(0));
/// assert_eq!(policy.decide(&ann).denied_by(), Some("a"));
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
pub trait KeyedLimit: fmt::Debug + Send + Sync {
    /// Takes `n` permits of a key, or none. Returns how many are left. If `n` is 0, it changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they are not all available.
    fn take(&self, key: KeyRef<'_>, n: u64, now: Tick) -> Result<u64, Denied>;

    /// Gives `n` permits of a key back that were taken. Returns how many came back.
    fn undo(&self, key: KeyRef<'_>, n: u64, now: Tick) -> u64;

    /// Returns how many permits a key has left, or the answer to a request for `n` of them. Takes
    /// nothing. The default takes 0 permits, and if fewer than `n` are left, it answers
    /// [`Denied::busy`]. If [`take`](Self::take) tells how long to wait, implement this too.
    ///
    /// # Errors
    ///
    /// The [`Denied`] that [`take`](Self::take) would return.
    fn check(&self, key: KeyRef<'_>, n: u64, now: Tick) -> Result<u64, Denied> {
        let left = self.take(key, 0, now)?;
        (left >= n).then_some(left).ok_or(Denied::busy(n))
    }

    /// Corrects an estimate of `n` permits to what the request cost in the end. The default gives
    /// back unused permits, and charges nothing more.
    fn settle(&self, key: KeyRef<'_>, n: u64, actual: u64, now: Tick) -> Settled {
        let mut settled = Settled::default();
        let unused = n.saturating_sub(actual);
        if unused > 0 {
            settled.returned = self.undo(key, unused, now);
            settled.lost = unused.saturating_sub(settled.returned);
        }
        settled
    }
}

/// One key of a [`KeyedLimit`], as a member of a composition.
struct OfKey<'l, L: ?Sized>(&'l L, KeyRef<'l>);

impl<L: KeyedLimit + ?Sized, C> Member<C> for OfKey<'_, L> {
    fn place(&self) -> Place {
        Place::of(self.0).with_hash(self.1.hash)
    }

    fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
        self.0.check(self.1, n, now).map(drop)
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        let left = self.0.take(self.1, n, now)?;
        let granted = Granted::new(n, now).with_remaining(left, NonZeroU64::MIN);
        Ok(granted.into())
    }

    fn available_at(&self, now: Tick) -> u64 {
        self.0.check(self.1, 1, now).unwrap_or(0)
    }

    fn give_back(&self, held: Held, now: Tick) -> u64 {
        self.0.undo(self.1, held.granted.n(), now)
    }

    fn correct(&self, held: Held, actual: u64, now: Tick) -> Settled {
        self.0.settle(self.1, held.granted.n(), actual, now)
    }
}

impl<L: KeyedLimit, C> OwnLimit<C> for L {
    /// A limit decides in the same way under each plan.
    fn with_key(&self, key: KeyRef<'_>, _: usize, visit: &mut dyn FnMut(&DynLimit<'_, C>)) {
        visit(&OfKey(self, key));
    }
}

/// A limit for many keys, as a trait object: see [`OwnLimit::with_key`].
pub type DynLimit<'l, C> = dyn Member<C> + Send + Sync + 'l;

/// A limit of a rule that is decided in this process by an algorithm or a store that the program
/// registered, as a member of a composition.
///
/// `C` is the policy's clock. `Keyed` tables implement it, and so does each [`KeyedLimit`], which
/// is easier to write.
pub trait OwnLimit<C>: fmt::Debug + Send + Sync {
    /// Calls `visit` once with the limit of this key under this plan.
    ///
    /// The limit's [place](tollgate::compose::Member::place) must be the same each time.
    fn with_key(&self, key: KeyRef<'_>, plan: usize, visit: &mut dyn FnMut(&DynLimit<'_, C>));
}

impl<A, C> OwnLimit<C> for Keyed<A, C, Hashed>
where
    A: Algorithm + GiveBack + Debt + fmt::Debug + Send + Sync,
    C: Clock + fmt::Debug + Send + Sync,
{
    fn with_key(&self, key: KeyRef<'_>, plan: usize, visit: &mut dyn FnMut(&DynLimit<'_, C>)) {
        visit(&self.key(&KeyHash(key.hash)).with_plan(plan));
    }
}
