//! Compares how many requests a sharded limiter and a single word serve. Requests come at random
//! times or evenly spaced, are served or denied, and are not retried.

use tollgate::algorithm::Split;

use crate::support::*;

#[derive(Debug, Clone, Copy)]
enum Arrivals {
    /// The time between two requests is exponential.
    Random,
    /// All requests are equally far apart. At some loads, each comes at the very nanosecond at
    /// which one word has its next permit.
    Even,
}

/// The permits in each request, how the requests come, and their number.
type Load = (u64, Arrivals, u64);

/// Returns the share that shards serve of the requests that one word serves, at a fraction of the
/// rate. Requests begin at each shard in turn, or all at one.
fn served(limiter: &Tested, load: Load, of_rate: f64, in_turn: bool) -> f64 {
    let (n, arrivals, requests) = load;
    let algorithm = *limiter.algorithm();
    let whole = Limiter::unstarted(algorithm, NoClock);
    let quota = algorithm.quota();
    let interval = quota.period().as_nanos() as f64 / quota.permits() as f64;
    let between = interval * n as f64 / of_rate;
    let mut random = Random(0x0070_11a7_e701);
    let (mut now, mut parts, mut one) = (Tick::ZERO, 0, 0);
    for request in 0..requests {
        now = match arrivals {
            Arrivals::Random => {
                let part = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
                let wait = Duration::from_nanos((-(1.0 - part).ln() * between) as u64);
                now.saturating_add(wait)
            }
            Arrivals::Even => tick((between * request as f64) as u64),
        };
        let shard = if in_turn { request as usize } else { 1 };
        let view = limiter.at(now).from_shard(shard);
        parts += u32::from(view.try_acquire_n(n).is_ok());
        one += u32::from(whole.at(now).try_acquire_n(n).is_ok());
    }
    f64::from(parts) / f64::from(one)
}

type Tested = Sharded<AnyAlgorithm, ManualClock>;

const ALL_LOADS: [f64; 7] = [0.5, 0.8, 0.9, 0.99, 1.05, 1.2, 1.5];
const SOME_LOADS: [f64; 3] = [0.8, 0.99, 1.5];

/// Evenly spaced requests come just in time at these loads.
const EVEN_LOADS: [f64; 10] = [0.5, 0.66, 0.75, 0.8, 0.9, 0.95, 1.0, 1.05, 1.25, 1.5];
const SOME_EVEN_LOADS: [f64; 2] = [0.8, 1.0];

fn loads(arrivals: Arrivals) -> &'static [f64] {
    match (arrivals, cfg!(debug_assertions)) {
        (Arrivals::Random, true) => &SOME_LOADS,
        (Arrivals::Random, false) => &ALL_LOADS,
        (Arrivals::Even, true) => &SOME_EVEN_LOADS,
        (Arrivals::Even, false) => &EVEN_LOADS,
    }
}

/// Returns the smallest share that shards serve of what one word serves, at these fractions of the
/// rate, and what describes it.
fn least(load: Load, rates: &[f64], limiter: impl Fn() -> Tested) -> (f64, String) {
    let rates = rates.iter();
    let ways = rates.flat_map(|of_rate| [true, false].map(|in_turn| (*of_rate, in_turn)));
    let shares = ways.map(|(of_rate, in_turn)| {
        let limiter = limiter();
        let (algorithm, shards) = (limiter.algorithm(), limiter.shards());
        let label = format!("{algorithm} in {shards}: {load:?}, {of_rate}, in turn: {in_turn}");
        (served(&limiter, load, of_rate, in_turn), label)
    });
    let least = shares.min_by(|one, other| one.0.total_cmp(&other.0));
    least.expect("some rates")
}

fn of_burst(burst: u64) -> [AnyAlgorithm; 9] {
    let refill = burst.div_ceil(3);
    [
        format!("token-bucket 1000/s burst {burst}"),
        format!("fixed-window {burst}/s first-hit"),
        format!("sliding-window {burst}/s"),
        format!("gcra 7/s burst {burst}"),
        format!("intervals {refill}/s burst {burst}"),
        format!("sliding-window {burst}/s rounding down"),
        format!("leaky-meter 13/min burst {burst}"),
        format!("intervals {refill}/s burst {burst} greedy"),
        format!("fixed-window {burst}/s"),
    ]
    .map(|text| algorithm(&text))
}

/// Tests the number of shards that the constructor chooses.
fn shards_serve_nearly_as_much(arrivals: Arrivals, requests: u64) {
    let step = if cfg!(debug_assertions) { 3 } else { 1 };
    for (turn, cores) in [1, 2, 8, 16, 64].into_iter().enumerate() {
        let twice = 2 * cores as u64;
        for burst in [twice, 3 * cores as u64 + 1, 8 * cores as u64 + 1, 100, 1000] {
            let algorithms = of_burst(burst).into_iter().skip(turn % step).step_by(step);
            for algorithm in algorithms {
                let clock = ManualClock::new;
                let limiter = || Sharded::for_cores(algorithm, cores, clock()).expect("it splits");
                assert!(limiter().shards() >= cores.min(2) || burst < twice);
                // A request for one permit begins the period of a large shard alone. Small shards
                // of greedy intervals are emptied one after another.
                let is_small = !algorithm.is_steady() && burst < 8;
                let goal_of_one = match arrivals {
                    Arrivals::Even if is_small => 0.88,
                    Arrivals::Even if algorithm.begins_with_a_permit() => 0.96,
                    Arrivals::Random if is_small => 0.97,
                    _ => 0.99,
                };
                for (n, goal) in [(1, goal_of_one), (burst / 2, 0.95)] {
                    let load = (n, arrivals, requests);
                    let (part, label) = least(load, loads(arrivals), limiter);
                    assert!(part >= goal, "{part}: {label}");
                }
            }
        }
    }
}

#[test]
fn shards_serve_nearly_as_much_as_one_word() {
    let requests = debug_or_release(1000, 10_000);
    deadline("service", move || {
        shards_serve_nearly_as_much(Arrivals::Random, requests);
    });
}

#[test]
fn shards_serve_nearly_as_much_as_one_word_if_requests_are_evenly_spaced() {
    let requests = debug_or_release(500, 10_000);
    deadline("even service", move || {
        shards_serve_nearly_as_much(Arrivals::Even, requests);
    });
}

/// Requests that come just in time for one word must not be too early for shards, which could
/// differ by a fraction of a permit, or by when their periods began.
#[test]
fn evenly_spaced_requests_are_served_nearly_as_by_one_word() {
    deadline("evenly spaced requests", || {
        for (text, shards, n, goal) in [
            ("sliding-window 5/s", 2, 1, 0.99),
            ("sliding-window 5/s", 2, 2, 0.99),
            ("sliding-window 10/s", 2, 2, 0.99),
            ("intervals 5/s greedy", 2, 1, 0.88),
            ("intervals 10/s greedy", 2, 2, 0.88),
            ("fixed-window 12/s first-hit", 3, 1, 0.99),
            ("fixed-window 25/s first-hit", 2, 1, 0.96),
            ("fixed-window 256/s first-hit", 64, 128, 0.95),
            ("intervals 256/s greedy", 64, 128, 0.95),
            ("intervals 43/s burst 128", 32, 64, 0.95),
        ] {
            let load = (n, Arrivals::Even, 1000);
            let (part, label) = least(load, &EVEN_LOADS, || both(text, shards).0);
            assert!(part >= goal, "{part}: {label}");
        }
    });
}

/// The cost of other numbers of shards. With `--nocapture` it prints the table.
#[test]
fn more_shards_than_the_default_serve_less() {
    let requests = debug_or_release(500, 20_000);
    deadline("service", move || {
        for burst in [4, 16, 64, 256] {
            for algorithm in &of_burst(burst)[..3] {
                for shards in [2, 4, 16, 64_usize] {
                    let clock = ManualClock::new;
                    let Ok(_) = Sharded::with_shards(*algorithm, shards, clock()) else {
                        assert!(shards as u64 > burst);
                        continue;
                    };
                    let limiter =
                        || Sharded::with_shards(*algorithm, shards, clock()).expect("again");
                    let arrivals = Arrivals::Random;
                    let part = |n| least((n, arrivals, requests), loads(arrivals), limiter).0;
                    let (one, half) = (part(1), part(burst / 2));
                    println!(
                        "| `{algorithm}` | {shards} | {:.1} % | {:.1} % |",
                        100.0 * one,
                        100.0 * half
                    );
                    assert!(one > 0.9 && half > 0.8, "{algorithm} in {shards}");
                }
            }
        }
    });
}

/// Returns a sharded limiter and one on a single word.
fn both(text: &str, shards: usize) -> (Tested, Limiter<AnyAlgorithm, NoClock>) {
    let algorithm = algorithm(text);
    let limiter = Sharded::with_shards(algorithm, shards, ManualClock::new()).expect("it splits");
    (limiter, Limiter::unstarted(algorithm, NoClock))
}

/// One shard has checked the others when few permits were left. Then most of the permits come back.
#[test]
fn returned_permits_are_spread_evenly() {
    let (limiter, whole) = both("token-bucket 1000/s burst 1024", 8);
    let at = |ms: u64| tick(ms * 1_000_000);
    let ask = |shard, ms| limiter.at(at(ms)).from_shard(shard).try_acquire();
    let mut taken = Vec::new();
    for turn in 0..784 {
        taken.push(ask(1 + turn % 7, 0).expect("a permit"));
    }
    while ask(0, 0).is_ok() {}
    let back: u64 = taken
        .into_iter()
        .map(|one| limiter.at(at(0)).undo(one))
        .sum();
    assert_eq!(back, 784);
    let _ = whole.at(at(0)).take_up_to(1024 - 784);
    for _ in 0..95 {
        let served = (ask(0, 230).is_ok(), whole.at(at(230)).try_acquire().is_ok());
        assert_eq!(served, (true, true));
    }
    let left = [
        limiter.at(at(330)).available(),
        whole.at(at(330)).available(),
    ];
    assert!(left[0] * 100 >= left[1] * 99, "{left:?}");
}

/// A single thread asks at the rate for a while, then in a burst, and then rests until the limit is
/// full again, repeatedly.
#[test]
fn bursts_after_rests_are_served() {
    deadline("bursts", || {
        // They serve as much as if each request checked all shards.
        for (shards, burst, goal) in [
            (8, 1024, 0.983),
            (16, 1024, 0.986),
            (16, 4096, 0.991),
            (64, 4096, 0.991),
        ] {
            let (limiter, whole) = both(&format!("token-bucket 1000/s burst {burst}"), shards);
            let interval = 1e6;
            let full = burst as f64 * interval;
            let (mut now, mut parts, mut one) = (0.0, 0_u32, 0_u32);
            for _ in 0..8 {
                for (part, of_rate) in [(0.04, 1.0), (0.06, 20.0)] {
                    for _ in 0..(part * full / interval * of_rate) as u32 {
                        now += interval / of_rate;
                        let tick = tick(now as u64);
                        let view = limiter.at(tick).from_shard(1);
                        parts += u32::from(view.try_acquire().is_ok());
                        one += u32::from(whole.at(tick).try_acquire().is_ok());
                    }
                }
                now += 1.1 * full;
            }
            let part = f64::from(parts) / f64::from(one);
            assert!(part >= goal, "{part}: {shards} shards of {burst}");
        }
    });
}

/// Makes one request after the other, each of which retries exactly when told. Returns the time
/// that many of them take.
fn time_of(mut ask: impl FnMut(Tick) -> Result<(), Denied>) -> u64 {
    let mut now = Tick::ZERO;
    for _ in 0..300 {
        let mut asked = 0;
        while let Err(denied) = ask(now) {
            let wait = denied.retry_after().expect("it fits");
            assert!(!wait.is_zero());
            now = now.saturating_add(wait);
            asked += 1;
            assert!(asked < 3, "told too early, at {now:?}");
        }
    }
    now.as_nanos()
}

/// Such requests take no longer than with one word, except for the nanosecond by which one permit
/// of each shard may be late.
#[test]
fn callers_that_retry_when_told_are_served_as_by_one_word() {
    deadline("requests that ask again", || {
        for burst in [2, 3, 16, 31, 100] {
            for algorithm in of_burst(burst) {
                for shards in [1, 2, 3, 15, 16] {
                    for n in [1, 2, burst / 2, burst].into_iter().filter(|n| *n > 0) {
                        let limiter = Sharded::with_shards(algorithm, shards, ManualClock::new());
                        let Ok(limiter) = limiter else { continue };
                        let whole = Limiter::unstarted(algorithm, NoClock);
                        let mut turn = 0;
                        let parts = time_of(|now| {
                            turn += 1;
                            limiter.at(now).from_shard(turn).try_acquire_n(n).map(drop)
                        });
                        let one = time_of(|now| whole.at(now).try_acquire_n(n).map(drop));
                        let label = format!("{n} each of {algorithm} in {shards}: {parts}, {one}");
                        assert!(parts as f64 <= one as f64 * 1.01 + 1e3, "{label}");
                    }
                }
            }
        }
    });
}
