//! Tables of keys: the slots of each key, the actions, and the checks at the end of each execution.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tollgate::algorithm::{Algorithm, Debt, GiveBack};
use tollgate::clock::Clock;
use tollgate::{Granted, Keep, Keyed, Quota, Tick, TokenBucket};
use tollgate_audit::Bound;

use crate::action::Action as Any;
use crate::rules;
use crate::scenario::Scenario as AnyScenario;
use crate::source::{Operation, Source};
use crate::total::{Lenient, MIXED};
use crate::verbs::{Answer, debt_verbs, give_back_verbs, take_verbs};

/// A hasher whose hash of a key is the key itself, in 60 bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdentityHasher(u64);

/// Makes such hashers.
pub type IdentityState = BuildHasherDefault<IdentityHasher>;

impl Hasher for IdentityHasher {
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

/// A clock that stands still. Only statistics read it.
#[derive(Debug, Clone, Copy)]
pub struct FrozenClock;

impl Clock for FrozenClock {
    fn now(&self) -> Tick {
        Tick::ZERO
    }
}

/// A table whose keys have a limit of this kind.
pub type TableOf<A> = Keyed<A, FrozenClock, IdentityState>;
/// A table of token buckets.
pub type Table = TableOf<TokenBucket>;
/// One call on a table.
pub type Action<A = TokenBucket> = Any<TableOf<A>, Memory>;
/// A scenario on a table.
pub type Scenario<A = TokenBucket> = AnyScenario<TableOf<A>, Memory>;

/// An actor's memory: its last grant, and all its grants by key.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    last: Option<Granted>,
    granted: Vec<(u64, Granted)>,
}

impl Memory {
    fn remember(&mut self, key: u64, answer: Answer) -> Answer {
        if let Answer::Granted(granted) = answer {
            self.last = Some(granted);
            self.granted.push((key, granted));
        }
        answer
    }
}

/// Keys. In a table of two slots, the primary bucket of `A`, `B` and `C` is the first slot, and
/// that of `Y` and `Z` is the second; each key may also be in the other slot.
pub const A: u64 = 0x10;
/// See [`A`].
pub const B: u64 = 0x20;
/// See [`A`].
pub const C: u64 = 0x30;
/// See [`A`].
pub const Y: u64 = 0x41;
/// See [`A`].
pub const Z: u64 = 0x51;

/// The bit of a hash that selects which of two pairs has the key's first primary bucket.
pub const PAIR: u64 = 1 << 59;

/// A token bucket with this burst, and a permit every ten nanoseconds.
pub fn bucket(burst: u64) -> TokenBucket {
    let quota = Quota::per(burst, Duration::from_nanos(10 * burst));
    TokenBucket::new(quota).expect("a quota")
}

/// The fence of a caller that inserts a key.
pub fn fence() -> [Operation; 1] {
    Source(&["keyed/find/table/transitions.rs"]).sites(["fence_after_exchange(Ordering::SeqCst)"])
}

/// Makes a table with this many slots.
pub fn table<A: Algorithm>(algorithm: A, slots: usize) -> TableOf<A> {
    let table = Keyed::with_clock(algorithm, slots, FrozenClock).expect("a few slots");
    table.with_hasher(IdentityState::default())
}

fn tick(at: u64) -> Tick {
    Tick::from_nanos(at)
}

macro_rules! action {
    ($trait:ident $name:ident(granted) $method:ident $answer:expr) => {
        /// The verb with the thread's last grant, if it has one.
        pub fn $name<A: $trait + 'static>(key: u64, at: u64) -> Action<A> {
            let name = format!("{} of {key:#x} at {at}", stringify!($name));
            Action::new(name, move |limiter, memory| match memory.last.take() {
                Some(granted) => $answer(limiter.key(&key).at(tick(at)).$method(granted)),
                None => Answer::Done,
            })
        }
    };
    ($trait:ident $name:ident($($n:ident)?) $method:ident $answer:expr) => {
        #[doc = concat!("`", stringify!($method), "` of a key.")]
        pub fn $name<A: $trait + 'static>(key: u64, $($n: u64,)? at: u64) -> Action<A> {
            let name = [stringify!($name).to_owned() $(, $n.to_string())?].join(" ");
            Action::new(format!("{name} of {key:#x} at {at}"), move |limiter, memory| {
                let answer = $answer(limiter.key(&key).at(tick(at)).$method($($n)?));
                memory.remember(key, answer)
            })
        }
    };
}

/// Makes the actions of a group's verbs.
macro_rules! actions {
    ({} [$trait:ident $($limiter:ident)?] $(
        $variant:ident $name:ident($($n:ident)?) = $method:ident $(/ $at:ident)?:
            $kind:ident -> $answer:expr $(, $of:expr)?;
    )*) => {
        $(action!($trait $name($($n)?) $method $answer);)*
    };
}
take_verbs!(actions!);
give_back_verbs!(actions!);
debt_verbs!(actions!);

/// Takes `n` permits of a key, with one of the plans.
pub fn take_by<A: Algorithm + 'static>(
    plan: usize,
    key: u64,
    n: u64,
    at: u64,
    name: impl Into<String>,
) -> Action<A> {
    Action::new(name, move |limiter, memory| {
        let at = limiter.key(&key).with_plan(plan).at(tick(at));
        memory.remember(key, at.try_acquire_n(n).into())
    })
}

/// Removes a key.
pub fn forget<A: Algorithm + 'static>(key: u64) -> Action<A> {
    Action::new(format!("forget {key:#x}"), move |limiter, _| {
        Answer::Is(limiter.key(&key).remove())
    })
}

/// Resets a key.
pub fn reset<A: Algorithm + 'static>(key: u64) -> Action<A> {
    Action::new(format!("reset {key:#x}"), move |limiter, _| {
        limiter.key(&key).reset();
        Answer::Done
    })
}

/// Bans a key until a tick.
pub fn ban<A: Algorithm + 'static>(key: u64, until: u64, at: u64) -> Action<A> {
    let name = format!("ban {key:#x} until {until} at {at}");
    Action::new(name, move |limiter, _| {
        match limiter.key(&key).at(tick(at)).ban(tick(until)) {
            Ok(()) => Answer::Done,
            Err(denied) => Answer::Denied(denied),
        }
    })
}

/// Sets the quota of a plan, of `limit` permits a second.
pub fn set_plan(plan: usize, limit: u64, keep: Keep, at: u64) -> Action<Lenient> {
    let name = format!("set {limit}, {keep:?}, of plan {plan}");
    Action::new(name, move |limiter, _| {
        let quota = Quota::per(limit, Duration::from_secs(1));
        Answer::Is(
            limiter
                .set_plan_quota_at(plan, quota, keep, tick(at))
                .is_ok(),
        )
    })
}

/// Checks what holds at the end of each execution, even if an actor stopped: each of these keys has
/// at most one slot, and the counts add up.
pub fn check_stopped<A: Algorithm>(limiter: &TableOf<A>, keys: &[u64]) {
    for key in keys {
        let slots = limiter.slots_of(key).len();
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

/// Like [`check_stopped`], for runs in which no actor stopped: also checks that no slot is still
/// claimed.
pub fn check<A: Algorithm>(limiter: &TableOf<A>, keys: &[u64]) {
    check_stopped(limiter, keys);
    assert_eq!(limiter.claims(), 0, "a slot is still claimed");
}

/// Makes a scenario on such a table. At its end, checks the table and asks how many permits these
/// keys have left.
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

/// Like [`scenario`], but one actor may stop.
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

/// Returns how many permits of each key are left.
fn left<A: Algorithm>(limiter: &Arc<TableOf<A>>, keys: &[u64], at: u64) -> Vec<Answer> {
    let each = keys.iter().map(|key| limiter.key(key).at(tick(at)));
    each.map(|key| Answer::Count(key.available())).collect()
}

/// Makes a scenario in which actors only take permits, all at one tick, and remove keys. The
/// permits granted to each key and those left are its burst, plus at most one burst for each time
/// that a key was evicted or removed.
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

/// Makes a scenario in which no key is evicted or removed: the grants of each key keep the bound at
/// all ticks.
pub fn bounded_scenario(
    make: impl Fn() -> Table + Send + Sync + 'static,
    keys: &'static [u64],
    at: u64,
    bound: Bound,
) -> Scenario {
    Scenario::at(make).after(move |limiter, memories| {
        check(limiter, keys);
        let stats = limiter.stats();
        assert_eq!(stats.evicted, 0, "a key was evicted");
        for key in keys {
            let answers = granted(memories, *key).map(Answer::Granted).collect();
            rules::check_bound(&bound, &[answers]);
        }
        left(limiter, keys, at)
    })
}

/// Returns the grants that the actors got for a key.
fn granted(memories: &[Memory], key: u64) -> impl Iterator<Item = Granted> {
    let all = memories.iter().flat_map(|memory| &memory.granted);
    all.filter(move |(of, _)| *of == key)
        .map(|(_, granted)| *granted)
}

/// Adds a rule to a scenario: no answer comes from the word of another quota or algorithm.
pub fn unmixed(scenario: Scenario<Lenient>, of: &'static str) -> Scenario<Lenient> {
    scenario.rule(move |played| {
        for answer in played.all() {
            let there = match answer {
                Answer::Granted(granted) => granted.remaining(),
                Answer::Count(there) => *there,
                _ => 0,
            };
            assert!(there < MIXED / 2, "another {of}: {answer:?}");
        }
    })
}
