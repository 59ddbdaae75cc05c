//! Measures compositions on one thread: several buckets that grant all or nothing, beside the sum
//! of the members' own decisions, and beside a mutex around two buckets. Bench `composed` of
//! `tollgate-versus` has two governor limiters.

#[allow(dead_code, reason = "shared with the other benches")]
mod contestants;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use contestants::bucket::bucket;
use contestants::timing::{Aligned, Contestant, Crew, Kind, Runner};
use criterion::{Criterion, SamplingMode};
use tollgate::algorithm::Algorithm;
use tollgate::clock::{Clock, SystemClock};
use tollgate::compose::{All, Member, Members};
use tollgate::keyed::Key;
use tollgate::{Concurrency, Keyed, Limiter, Tick, TokenBucket};

type Bucket = Limiter<TokenBucket>;
type Dyn = Box<dyn Member<SystemClock> + Send + Sync>;
type User = Key<Arc<Keyed<TokenBucket>>>;

fn users(kind: Kind) -> Arc<Keyed<TokenBucket>> {
    let bucket = bucket(kind).expect("a quota that can be represented");
    Arc::new(Keyed::new(bucket, 1000).expect("a table"))
}

fn limiter(kind: Kind) -> Bucket {
    Limiter::new(bucket(kind).expect("a quota that can be represented"))
}

/// A composition at a given tick: each turn is a nanosecond later.
struct At<M>(All<M>);

impl<M: Members<SystemClock> + Sync> Contestant for At<M> {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        let now = Tick::from_nanos(turn);
        self.0.at(now).try_acquire_n(1).is_ok()
    }
}

/// A composition on the system clock.
struct OnClock<M>(All<M>);

impl<M: Members<SystemClock> + Sync> Contestant for OnClock<M> {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }
}

/// The members' own decisions at a given tick. A denial takes nothing back.
struct Plain<const N: usize>([Bucket; N]);

impl<const N: usize> Contestant for Plain<N> {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        let now = Tick::from_nanos(turn);
        let decide = |all, limiter: &Bucket| all & limiter.at(now).try_acquire().is_ok();
        self.0.iter().fold(true, decide)
    }
}

/// The members' own decisions on the system clock, which is read once for both.
struct PlainOnClock([Bucket; 2]);

impl Contestant for PlainOnClock {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        let [a, b] = &self.0;
        let now = SystemClock.now();
        a.at(now).try_acquire().is_ok() & b.at(now).try_acquire().is_ok()
    }
}

/// The own decisions of two keys at a given tick.
struct PlainKeys([User; 2]);

impl Contestant for PlainKeys {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        let now = Tick::from_nanos(turn);
        let [a, b] = &self.0;
        a.at(now).try_acquire().is_ok() & b.at(now).try_acquire().is_ok()
    }
}

/// The own decisions of a key and of a limiter at a given tick.
struct PlainKeyAndLimiter(User, Bucket);

impl Contestant for PlainKeyAndLimiter {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        let now = Tick::from_nanos(turn);
        self.0.at(now).try_acquire().is_ok() & self.1.at(now).try_acquire().is_ok()
    }
}

/// The own decisions of a key at a given tick and of a concurrency limit.
struct PlainKeyAndInside(User, Concurrency);

impl Contestant for PlainKeyAndInside {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        let now = Tick::from_nanos(turn);
        self.0.at(now).try_acquire().is_ok() & self.1.try_enter().is_ok()
    }
}

/// Two buckets behind one mutex: both step, or neither.
struct Locked {
    words: Mutex<[u64; 2]>,
    buckets: [TokenBucket; 2],
}

impl Locked {
    fn new(kinds: [Kind; 2]) -> Self {
        let buckets = kinds.map(|kind| bucket(kind).expect("a quota that can be represented"));
        let words = buckets
            .each_ref()
            .map(|bucket| bucket.initial_word(Tick::ZERO));
        Self {
            words: Mutex::new(words),
            buckets,
        }
    }
}

impl Contestant for Locked {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        let now = Tick::from_nanos(turn);
        let Ok(mut words) = self.words.lock() else {
            return false;
        };
        let ([a, b], [one, other]) = (&self.buckets, *words);
        match (a.step(one, now, 1), b.step(other, now, 1)) {
            (Ok((one, _)), Ok((other, _))) => {
                *words = [one, other];
                true
            }
            _ => false,
        }
    }
}

fn at<M: Members<SystemClock> + Sync + 'static>(members: M) -> Box<dyn Runner> {
    Box::new(Aligned(At(All::new(members).expect("limits"))))
}

fn on_clock<M: Members<SystemClock> + Sync + 'static>(members: M) -> Box<dyn Runner> {
    Box::new(Aligned(OnClock(All::new(members).expect("limits"))))
}

/// All contestants. Those that are denied have a first member with permits, and a last one without.
fn contestants(kind: Kind) -> Vec<(&'static str, Box<dyn Runner>)> {
    let (full, last) = (|| limiter(Kind::Allowed), || limiter(kind));
    let boxed = |kind| -> Dyn { Box::new(limiter(kind)) };
    let (first, end) = (|| boxed(Kind::Allowed), || boxed(kind));
    let eight = || [(); 8].map(|()| limiter(kind));
    let user = |kind, name| users(kind).key_owned(name);
    let inside = || Concurrency::new(1).expect("a size");
    vec![
        ("one_plain_tick", Box::new(Aligned(Plain([last()])))),
        ("two_plain_tick", Box::new(Aligned(Plain([last(), last()])))),
        ("all_two_tick", at((full(), last()))),
        ("all_array_of_two_tick", at([full(), last()])),
        ("all_dyn_two_tick", at([first(), end()])),
        ("all_vec_dyn_two_tick", at(vec![first(), end()])),
        (
            "mutex_two_tick",
            Box::new(Aligned(Locked::new([Kind::Allowed, kind]))),
        ),
        (
            "two_plain_system",
            Box::new(Aligned(PlainOnClock([last(), last()]))),
        ),
        ("all_two_system", on_clock((full(), last()))),
        (
            "three_plain_tick",
            Box::new(Aligned(Plain([last(), last(), last()]))),
        ),
        ("all_three_tick", at((full(), full(), last()))),
        ("eight_plain_tick", Box::new(Aligned(Plain(eight())))),
        ("all_eight_tick", at(eight())),
        (
            "keys_plain_tick",
            Box::new(Aligned(PlainKeys(["a", "b"].map(|name| user(kind, name))))),
        ),
        (
            "all_keys_tick",
            at((user(Kind::Allowed, "a"), user(kind, "b"))),
        ),
        (
            "key_limiter_plain_tick",
            Box::new(Aligned(PlainKeyAndLimiter(user(kind, "a"), last()))),
        ),
        (
            "all_key_limiter_tick",
            at((user(Kind::Allowed, "a"), last())),
        ),
        (
            "key_inside_plain_tick",
            Box::new(Aligned(PlainKeyAndInside(user(kind, "a"), inside()))),
        ),
        ("all_key_inside_tick", at((user(kind, "a"), inside()))),
    ]
}

fn main() {
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(1))
        .warm_up_time(Duration::from_millis(300))
        .configure_from_args();
    let kinds = Kind::BOTH.map(|kind| (kind, contestants(kind)));
    thread::scope(|scope| {
        let crew = Crew::hire(scope, 1);
        for (kind, contestants) in &kinds {
            let mut group = criterion.benchmark_group(format!("composed_{}", kind.name()));
            group.sampling_mode(SamplingMode::Flat);
            for (name, contestant) in contestants {
                group.bench_function(*name, |bencher| {
                    bencher.iter_custom(|turns| {
                        crew.time(&**contestant, *kind, 1, turns)
                            .unwrap_or_else(|error| panic!("{name}: {error}"))
                    });
                });
            }
            group.finish();
        }
    });
    criterion.final_summary();
}
