//! The wait in a denial is exact for every limiter. If no other caller comes, a retry at exactly
//! that time is granted, and a retry a nanosecond sooner is denied. The wait of
//! System.Threading.RateLimiting is rounded down, so its retry is denied again.

use tollgate::algorithm::{Lend, Reserve, Split};
use tollgate::{Adjustable, Keyed, TryAcquire};

use crate::support::algorithms::limiter;
use crate::support::edges::EDGES;
use crate::support::*;

const NANOSECOND: Duration = Duration::from_nanos(1);

/// Algorithms of every kind with a few hundred permits, or with more than those of all tests.
const TEXTS: [&str; 14] = [
    "token-bucket 7/s burst 256",
    "token-bucket 97/s burst 200 initial 0",
    "gcra 7/s burst 300",
    "leaky-meter 13/min burst 256",
    "leaky-queue 10/s burst 256",
    "leaky-queue 10/s burst 200 free 5",
    "fixed-window 256/d origin 1700000000s offset 2h",
    "fixed-window 256/7ms first-hit",
    "fixed-window 4294967295/min first-hit",
    "sliding-window 256/7ms",
    "sliding-window 300/min rounding down",
    "intervals 10/s burst 256 initial 3",
    "intervals 10/s burst 256 greedy",
    "intervals 100000000000/h greedy",
];

/// Returns these algorithms, and those of all tests.
fn all_algorithms() -> impl Iterator<Item = AnyAlgorithm> {
    TEXTS.map(algorithm).into_iter().chain(algorithms())
}

/// Asks a limiter for permits at a tick.
type Ask = Box<dyn FnMut(u64, Tick) -> Result<(), Denied>>;

/// A kind of limiter with a quota.
struct Subject {
    name: String,
    fresh: Box<dyn Fn() -> Ask>,
    /// The most that the limiter grants at once. A lease also grants what it holds.
    limit: u64,
    period: u64,
    /// The limiter has that many permits again in less than this time.
    refills: u128,
}

impl Subject {
    fn new(name: &str, limit: u64, quota: Quota, fresh: impl Fn() -> Ask + 'static) -> Self {
        let period = quota.period().as_nanos();
        let interval = period.div_ceil(quota.permits().into());
        Self {
            name: format!("{name}, {quota}"),
            fresh: Box::new(fresh),
            limit,
            period: period as u64,
            refills: interval * u128::from(quota.burst_size()) + 2 * period,
        }
    }

    fn of(name: &str, algorithm: AnyAlgorithm, fresh: impl Fn() -> Ask + 'static) -> Self {
        let name = format!("{name} of {algorithm}");
        let limit = algorithm.available(0, Tick::ZERO);
        Self::new(&name, limit, algorithm.quota(), fresh)
    }

    /// Asks for `n`, and retries at the tick that the denial names. Returns the tick of the grant,
    /// if there is one.
    #[track_caller]
    fn ask_again(&self, ask: &mut Ask, n: u64, now: Tick) -> Option<Tick> {
        let name = format!("{n} of {} at {now:?}", self.name);
        let denied = match ask(n, now) {
            Ok(()) => return Some(now),
            Err(denied) => denied,
        };
        assert_eq!(denied.requested(), n, "{name}");
        match denied {
            Denied::Later { retry_after, .. } => {
                assert!(
                    n <= self.limit || self.name.starts_with("a lease"),
                    "{name}"
                );
                let due = now.saturating_add(retry_after);
                let early = ask(n, due.saturating_sub(NANOSECOND));
                assert_eq!(early, Err(Denied::later(n, NANOSECOND)), "{name}: {due:?}");
                assert_eq!(ask(n, due), Ok(()), "{name}: {due:?}");
                return Some(due);
            }
            Denied::Never { limit, .. } => {
                assert!(n > limit && limit >= self.limit, "{name}: {denied:?}");
            }
            denied => {
                let full = u128::from(now.as_nanos()) + self.refills;
                assert_eq!(denied, Denied::stuck(n), "{name}");
                assert!(full > FIFTY_YEARS.into(), "{name}: {denied:?}");
            }
        }
        None
    }

    /// Takes all available permits, except for those that shards refill meanwhile if they count
    /// ahead.
    fn empty(&self, ask: &mut Ask, now: Tick) {
        for bit in (0..=self.limit.ilog2()).rev() {
            let _ = (0..4).all(|_| ask(1 << bit, now).is_ok());
        }
    }

    /// Asks for all numbers up to 256, and for numbers around what is available.
    fn ask_for_all(&self, random: &mut Random) {
        let limit = self.limit;
        let edges = [limit, limit / 2, limit / 3 + 1, limit - 1, limit + 1];
        let numbers = (1..=256).chain(edges).chain(EDGES).filter(|n| *n > 0);
        let (mut now, mut ask) = (Tick::MAX, (self.fresh)());
        let (mut granted, mut later) = (0, 0);
        for n in numbers {
            if now.as_nanos() > FIFTY_YEARS / 2 {
                (now, ask) = (tick(random.upto(FIFTY_YEARS / 4)), (self.fresh)());
            }
            let longest = if random.one_in(2) { self.period } else { 0 };
            let idle = random.upto(longest);
            let asked = now.saturating_add(Duration::from_nanos(idle));
            if random.one_in(2) {
                self.empty(&mut ask, asked);
            }
            match self.ask_again(&mut ask, n, asked) {
                Some(due) => {
                    granted += 1;
                    later += u64::from(due > asked);
                    now = due;
                }
                None if n > limit => {}
                None => now = Tick::MAX,
            }
        }
        let possible = limit.min(256);
        let label = format!("{later} of {granted}: {}", self.name);
        assert!(granted >= possible && later >= possible / 3, "{label}");
    }
}

fn asks<G: TryAcquire + 'static>(limiter: G) -> Ask {
    Box::new(move |n, now| limiter.try_acquire_n_at(n, now).map(drop))
}

/// Returns all single-threaded limiters that decide by an algorithm.
fn by_algorithm(algorithm: AnyAlgorithm) -> Vec<Subject> {
    let mut all = vec![
        Subject::of("a limiter", algorithm, move || asks(limiter(algorithm))),
        Subject::of("a counted limiter", algorithm, move || {
            asks(Counted::new(limiter(algorithm)))
        }),
    ];
    let shards = [1, 2, 3, 7, 16].into_iter();
    for shards in shards.filter(|shards| *shards as u64 <= algorithm.most_shards()) {
        let made = move || Sharded::with_shards(algorithm, shards, ManualClock::new());
        if made().is_err() {
            continue;
        }
        all.push(Subject::of(
            &format!("{shards} shards"),
            algorithm,
            move || {
                let (limiter, mut from) = (made().expect("again"), 0);
                Box::new(move |n, now| {
                    from += 5;
                    limiter.at(now).from_shard(from).try_acquire_n(n).map(drop)
                })
            },
        ));
    }
    if algorithm.most_lent() > 0 {
        all.extend(leases(algorithm));
    }
    all
}

/// Returns leases that hold nothing, part of the total, and all of it.
fn leases(algorithm: AnyAlgorithm) -> impl Iterator<Item = Subject> {
    let total = 1 + (algorithm.most_lent() - 1) / 3;
    let less = algorithm.lending(total).expect("it lends");
    [0, 1 + total / 2, total].into_iter().map(move |size| {
        Subject::of(&format!("a lease of {size} of {total}"), less, move || {
            let clock = ManualClock::new();
            let limiter = Leases::with_clock(algorithm, total, clock.clone()).expect("it lends");
            let mut lease = Arc::new(limiter).lease_owned(size);
            Box::new(move |n, now| {
                clock.set(now);
                lease.try_acquire_n(n)
            })
        })
    })
}

/// Returns limiters that know how long the caller can wait. Permits leave a queue one after the
/// other, so there is a maximum that leaves in that time.
fn with_patience<A: Reserve + ChangeQuota + Copy + 'static>(
    algorithm: A,
    is_queue: bool,
) -> [Subject; 3] {
    let quota = algorithm.quota();
    let burst = quota.burst_size();
    let most = |waiting: u64| {
        if is_queue {
            burst.min(1 + waiting)
        } else {
            burst
        }
    };
    let interval = quota.period() / quota.permits() as u32;
    let halves = [(0, 0), (3, 7), (9, 19)];
    halves.map(|(waiting, halves)| {
        let patience = interval * halves / 2;
        let name = format!("a reservation within {patience:?}");
        Subject::new(&name, most(waiting), quota, move || {
            let limiter = Limiter::unstarted(algorithm, NoClock);
            Box::new(move |n, now| limiter.reserve_within_at(n, patience, now).map(drop))
        })
    })
}

/// Returns the multiword windows.
fn windows(quota: Quota) -> [Subject; 3] {
    let limit = quota.permits();
    [
        Subject::new("a log", limit, quota, move || {
            asks(SlidingLog::with_clock(quota, ManualClock::new()).expect("a log"))
        }),
        Subject::new("five slots", limit, quota, move || {
            asks(SlottedWindow::with_clock(quota, 5, ManualClock::new()).expect("slots"))
        }),
        Subject::new("a hundred slots", limit, quota, move || {
            asks(SlottedWindow::with_clock(quota, 100, ManualClock::new()).expect("slots"))
        }),
    ]
}

/// Returns a limiter whose quota can change, and a key of a table.
fn adjustable_and_keyed(algorithm: AnyAlgorithm) -> [Subject; 2] {
    [
        Subject::of("an adjustable", algorithm, move || {
            asks(Adjustable::starting_at(algorithm, NoClock, Tick::ZERO))
        }),
        Subject::of("a key", algorithm, move || {
            let limiter = Keyed::with_clock(algorithm, 16, ManualClock::new()).expect("a table");
            Box::new(move |n, now| limiter.key("key").at(now).try_acquire_n(n).map(drop))
        }),
    ]
}

fn ask_all(subjects: impl IntoIterator<Item = Subject>) {
    let mut random = Random(0x0070_11a7_eb01);
    for subject in subjects {
        subject.ask_for_all(&mut random);
    }
}

#[test]
fn retry_times_are_exact_for_every_algorithm_sharded_and_leased() {
    ask_all(all_algorithms().flat_map(by_algorithm));
}

#[test]
fn retry_times_are_exact_for_every_adjustable_or_keyed_algorithm() {
    ask_all(all_algorithms().flat_map(adjustable_and_keyed));
}

#[test]
fn retry_times_are_exact_for_multiword_windows() {
    let quotas = ["256/7ms", "1/s", "3/min", "300/d", "20000/100s"];
    let quotas = quotas.into_iter().map(|text| text.parse().expect(text));
    ask_all(quotas.flat_map(windows));
}

#[test]
fn retry_times_are_exact_for_callers_that_can_wait() {
    let quotas = ["10/s burst 256", "97/s burst 200", "1/7ms burst 3", "1/s"];
    let quotas = quotas.map(|text| text.parse::<Quota>().expect(text));
    ask_all(quotas.into_iter().flat_map(|quota| {
        let bucket = with_patience(TokenBucket::new(quota).expect("a bucket"), false);
        let gcra = with_patience(Gcra::new(quota).expect("gcra"), false);
        let queue = with_patience(LeakyBucket::queue(quota).expect("a queue"), true);
        bucket.into_iter().chain(gcra).chain(queue)
    }));
}
