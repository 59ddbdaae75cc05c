//! Tables of keys: where each key is to be, what is done with it, and what holds of every table at
//! the end.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tollgate::algorithm::{Algorithm, Debt, GiveBack};
use tollgate::audit::Bound;
use tollgate::clock::Clock;
use tollgate::{Granted, Keyed, Quota, Tick, TokenBucket};

use crate::action::Action as Any;
use crate::rules;
use crate::scenario::Scenario as AnyScenario;
use crate::verb::Answer;

/// A key is its own hash: of 60 bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsItIs;

/// The hasher of [`AsItIs`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Itself(u64);

impl BuildHasher for AsItIs {
    type Hasher = Itself;

    fn build_hasher(&self) -> Itself {
        Itself::default()
    }
}

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("keys are numbers");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// A clock that stands: statistics ask it.
#[derive(Debug, Clone, Copy)]
pub struct Standing;

impl Clock for Standing {
    fn now(&self) -> Tick {
        Tick::ZERO
    }
}

/// A table of keys that have some limit.
pub type TableOf<A> = Keyed<A, Standing, AsItIs>;
/// A table of token buckets.
pub type Table = TableOf<TokenBucket>;
/// What is done with it.
pub type Action<A = TokenBucket> = Any<TableOf<A>, Memory>;
/// Who does what with it.
pub type Scenario<A = TokenBucket> = AnyScenario<TableOf<A>, Memory>;

/// What an actor remembers: its last grant, and what it has taken of which keys.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    last: Option<Granted>,
    granted: Vec<(u64, Granted)>,
}

/// Keys. In a table of two slots the primary bucket of the first ones is the first slot, and that of
/// `Y` and `Z` the second one; each may also be in the other slot.
pub const A: u64 = 0x10;
/// See [`A`].
pub const B: u64 = 0x20;
/// See [`A`].
pub const C: u64 = 0x30;
/// See [`A`].
pub const Y: u64 = 0x41;
/// See [`A`].
pub const Z: u64 = 0x51;

/// The bit of a hash that says in which of two pairs the key's first primary bucket is.
pub const PAIR: u64 = 1 << 59;

/// So many permits, and one anew every ten nanoseconds.
pub fn bucket(burst: u64) -> TokenBucket {
    let quota = Quota::per(burst, Duration::from_nanos(10 * burst));
    TokenBucket::new(quota).expect("a quota")
}

/// A table of so many slots.
pub fn table<A: Algorithm>(algorithm: A, slots: usize) -> TableOf<A> {
    let table = Keyed::with_clock(algorithm, slots, Standing).expect("a few slots");
    table.with_hasher(AsItIs)
}

fn tick(at: u64) -> Tick {
    Tick::from_nanos(at)
}

/// Takes `n` permits of a key.
pub fn take<A: Algorithm + 'static>(key: u64, n: u64, at: u64) -> Action<A> {
    let name = format!("take {n} of {key:#x} at {at}");
    take_by(0, key, n, at, name)
}

/// The same by one of the plans.
pub fn take_by<A: Algorithm + 'static>(
    plan: usize,
    key: u64,
    n: u64,
    at: u64,
    name: impl Into<String>,
) -> Action<A> {
    Action::new(name, move |limiter, memory| {
        match limiter.plan(plan).try_acquire_n_at(&key, n, tick(at)) {
            Ok(granted) => {
                memory.last = Some(granted);
                memory.granted.push((key, granted));
                Answer::Granted(granted)
            }
            Err(denied) => Answer::Denied(denied),
        }
    })
}

/// Takes what there is, up to `n` permits.
pub fn take_up_to<A: Algorithm + 'static>(key: u64, n: u64, at: u64) -> Action<A> {
    let name = format!("take up to {n} of {key:#x} at {at}");
    Action::new(name, move |limiter, _| {
        Answer::Granted(limiter.key(&key).at(tick(at)).take_up_to(n))
    })
}

/// Gives the last grant back to a key.
pub fn undo<A: GiveBack + 'static>(key: u64, at: u64) -> Action<A> {
    Action::new(
        format!("undo of {key:#x} at {at}"),
        move |limiter, memory| match memory.last.take() {
            Some(granted) => Answer::CameBack(limiter.key(&key).at(tick(at)).undo(granted)),
            None => Answer::Done,
        },
    )
}

/// Gives back `n` permits of a key.
pub fn refund<A: GiveBack + 'static>(key: u64, n: u64, at: u64) -> Action<A> {
    Action::new(
        format!("refund {n} of {key:#x} at {at}"),
        move |limiter, _| Answer::CameBack(limiter.key(&key).at(tick(at)).refund(n)),
    )
}

/// Takes `n` permits of a key, also into debt.
pub fn charge<A: Debt + 'static>(key: u64, n: u64, at: u64) -> Action<A> {
    Action::new(
        format!("charge {n} of {key:#x} at {at}"),
        move |limiter, _| Answer::Charged(limiter.key(&key).at(tick(at)).charge(n)),
    )
}

/// How many permits of a key there are.
pub fn available<A: Algorithm + 'static>(key: u64, at: u64) -> Action<A> {
    let name = format!("available of {key:#x} at {at}");
    Action::new(name, move |limiter, _| {
        Answer::Count(limiter.key(&key).at(tick(at)).available())
    })
}

/// A key goes.
pub fn forget<A: Algorithm + 'static>(key: u64) -> Action<A> {
    Action::new(format!("forget {key:#x}"), move |limiter, _| {
        Answer::Is(limiter.remove(&key))
    })
}

/// A key is made fresh.
pub fn reset<A: Algorithm + 'static>(key: u64) -> Action<A> {
    Action::new(format!("reset {key:#x}"), move |limiter, _| {
        limiter.key(&key).reset();
        Answer::Done
    })
}

/// A key is granted nothing for a while.
pub fn ban<A: Algorithm + 'static>(key: u64, until: u64, at: u64) -> Action<A> {
    let name = format!("ban {key:#x} until {until} at {at}");
    Action::new(name, move |limiter, _| {
        match limiter.key(&key).at(tick(at)).ban(tick(until)) {
            Ok(()) => Answer::Done,
            Err(denied) => Answer::Denied(denied),
        }
    })
}

/// What holds at the end of each execution, wherever somebody stopped: each of these keys has one
/// slot at most, and the counts add up.
///
/// # Panics
///
/// If that does not hold.
pub fn check_stopped<A: Algorithm>(limiter: &TableOf<A>, keys: &[u64]) {
    for key in keys {
        let slots = limiter.slots_of(key);
        assert!(slots <= 1, "{key:#x} has {slots} slots");
    }
    let stats = limiter.stats();
    let left = stats.expired + stats.evicted + stats.removed;
    assert_eq!(
        stats.inserted,
        stats.tracked + left,
        "the counts don't add up: {stats:?}"
    );
}

/// The same, and nothing is claimed any more: where nobody stopped.
///
/// # Panics
///
/// If that does not hold.
pub fn check<A: Algorithm>(limiter: &TableOf<A>, keys: &[u64]) {
    check_stopped(limiter, keys);
    assert_eq!(limiter.claims(), 0, "a slot is still claimed");
}

/// A scenario at such a table, checked at its end, where it is asked what is there of these keys.
pub fn scenario<A: Algorithm + Send + Sync + 'static>(
    make: impl Fn() -> TableOf<A> + Send + Sync + 'static,
    keys: &'static [u64],
    at: u64,
) -> Scenario<A> {
    Scenario::at(make).after(move |limiter, _| {
        check(limiter, keys);
        left(limiter, keys, at)
    })
}

/// The same, of which somebody may have stopped.
pub fn stopped_scenario<A: Algorithm + Send + Sync + 'static>(
    make: impl Fn() -> TableOf<A> + Send + Sync + 'static,
    keys: &'static [u64],
    at: u64,
) -> Scenario<A> {
    Scenario::at(make).after(move |limiter, _| {
        check_stopped(limiter, keys);
        left(limiter, keys, at)
    })
}

/// All that is there is taken, of each key.
fn left<A: Algorithm>(limiter: &Arc<TableOf<A>>, keys: &[u64], at: u64) -> Vec<Answer> {
    let each = keys.iter().map(|key| limiter.key(key).at(tick(at)));
    each.map(|key| Answer::Count(key.available())).collect()
}

/// A scenario that only takes permits, all at one tick, and forgets: what was granted of each of
/// these keys and what is left are all its permits, and one burst more at most for each time that
/// one was evicted or forgotten.
pub fn counted_scenario(
    make: impl Fn() -> Table + Send + Sync + 'static,
    keys: &'static [u64],
    at: u64,
    burst: u64,
) -> Scenario {
    Scenario::at(make).after(move |limiter, memories| {
        check(limiter, keys);
        let stats = limiter.stats();
        let gone = stats.evicted + stats.removed;
        for key in keys {
            let there = limiter.key(key).at(tick(at)).available();
            let total = there
                + granted(memories, *key)
                    .map(|granted| granted.n())
                    .sum::<u64>();
            let range = burst..=burst * (1 + gone);
            assert!(range.contains(&total), "{total} permits of {range:?}");
        }
        let mut after = left(limiter, keys, at);
        after.push(Answer::Count(gone));
        after
    })
}

/// A scenario in which none of these keys is evicted or forgotten: what each of them is granted
/// keeps the bound at all ticks.
pub fn bounded_scenario(
    make: impl Fn() -> Table + Send + Sync + 'static,
    keys: &'static [u64],
    at: u64,
    bound: Bound,
) -> Scenario {
    Scenario::at(make).after(move |limiter, memories| {
        check(limiter, keys);
        let stats = limiter.stats();
        assert_eq!(stats.evicted, 0, "a key is gone");
        for key in keys {
            let answers = granted(memories, *key).map(Answer::Granted).collect();
            rules::check_bound(&bound, &[answers]);
        }
        left(limiter, keys, at)
    })
}

/// What the actors were granted of a key.
fn granted(memories: &[Memory], key: u64) -> impl Iterator<Item = Granted> {
    let all = memories.iter().flat_map(|memory| &memory.granted);
    all.filter(move |(of, _)| *of == key)
        .map(|(_, granted)| *granted)
}
