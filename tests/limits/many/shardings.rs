//! Each algorithm that can be split, in few and many parts, beside its rule.

use std::time::Duration;

use tollgate::{
    AnyAlgorithm, FixedWindow, Gcra, Intervals, LeakyBucket, ManualClock, Quota, Rounding, Sharded,
    SlidingWindow, TokenBucket,
};

use crate::many::OPERATIONS;
use crate::many::parts::Every;
use crate::support::random::Random;
use crate::support::seen::Seen;
use crate::many::sharded::run;

/// All that each must have met.
const MUST_SEE: [&str; 27] = [
    "acquire",
    "acquire at its time",
    "take_up_to",
    "charge",
    "undo",
    "refund",
    "time_until",
    "available",
    "level",
    "reset",
    "from the own part",
    "from a sibling",
    "from several",
    "taken from one",
    "taken from several",
    "in debt",
    "later",
    "never",
    "stuck",
    "into debt",
    "charged",
    "charge cut",
    "none undone",
    "undone",
    "none refunded",
    "refunded",
    "far away",
];

/// Runs of all these in few and many parts, over and over, until there were enough operations.
fn runs<A: Every>(algorithms: &[A], seed: u64, must_see: &[&str]) {
    let (mut random, mut seen) = (Random(seed), Seen::default());
    while seen.count("operation") < OPERATIONS {
        for algorithm in algorithms {
            let most = algorithm.most_parts().min(16);
            let shards = 1 + random.below(most) as usize;
            if Sharded::with_shards(*algorithm, shards, ManualClock::new()).is_ok() {
                seen.add(&run(*algorithm, shards, &mut random, 100));
            }
        }
    }
    seen.check(OPERATIONS, &[&MUST_SEE, must_see]);
}

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 365 * 86_400 * SECOND;

/// Rates that come out even and not, bursts small and as large as fit.
fn quotas() -> Vec<Quota> {
    vec![
        Quota::per_second(1),
        Quota::per_second(10),
        Quota::per_second(1000).burst(40),
        Quota::per_second(97).burst(64),
        Quota::per_second(9_999_999_999).burst(100),
        Quota::per_minute(7).burst(5).initial(3),
        Quota::per_second(13).burst(30).initial(11),
        Quota::per_day(1).burst(1000),
        per_ns(1, 1).burst(100),
        per_ns(10, 1).burst(1 << 36),
        per_ns(1, YEAR).burst(16),
        per_ns(11, SECOND + 7).burst(3),
    ]
}

fn plain(quota: Quota) -> Quota {
    Quota::per(quota.burst_size(), quota.period())
}

#[test]
fn a_sharded_token_bucket_is_its_parts() {
    let buckets = quotas().into_iter().map(TokenBucket::new);
    let buckets = buckets.collect::<Result<Vec<_>, _>>().expect("buckets");
    runs(&buckets, 0x0070_11a7_e501, &["several undone"]);
}

#[test]
fn a_sharded_gcra_is_its_parts() {
    let ms = Duration::from_millis;
    let mut gcras: Vec<_> = quotas().into_iter().map(Gcra::new).collect();
    for (interval, tolerance) in [(10, 25), (10, 99), (7, 1000), (1000, 4999)] {
        gcras.push(Gcra::from_interval(ms(interval), ms(tolerance)));
    }
    let gcras = gcras.into_iter().collect::<Result<Vec<_>, _>>();
    runs(
        &gcras.expect("gcras"),
        0x0070_11a7_e502,
        &["several undone"],
    );
}

/// A meter in parts, and a queue in one.
#[test]
fn a_sharded_leaky_bucket_is_its_parts() {
    let meters = quotas().into_iter().map(LeakyBucket::meter);
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(20)).map(|queue| queue.free(3));
    let buckets = meters.chain([queue]).collect::<Result<Vec<_>, _>>();
    runs(
        &buckets.expect("buckets"),
        0x0070_11a7_e503,
        &["several undone"],
    );
}

#[test]
fn sharded_fixed_windows_are_their_parts() {
    let windows = quotas().into_iter().map(plain).map(FixedWindow::new);
    let windows: Vec<_> = windows.filter_map(Result::ok).collect();
    let offset = windows
        .iter()
        .map(|window| window.offset(Duration::from_nanos(77_777)));
    let windows: Vec<_> = windows.iter().copied().chain(offset).collect();
    runs(
        &windows,
        0x0070_11a7_e504,
        &["several undone", "from several, ahead"],
    );
}

#[test]
fn sharded_windows_opened_by_the_first_hit_are_their_parts() {
    let windows = quotas().into_iter().map(plain).map(FixedWindow::new);
    let windows = windows.filter_map(|window| window.ok()?.opened_by_first_hit().ok());
    runs(&windows.collect::<Vec<_>>(), 0x0070_11a7_e505, &[]);
}

#[test]
fn sharded_sliding_windows_are_their_parts() {
    let windows = quotas().into_iter().map(plain).map(SlidingWindow::new);
    let windows: Vec<_> = windows.filter_map(Result::ok).collect();
    let down = windows.iter().map(|window| window.rounding(Rounding::Down));
    let windows: Vec<_> = windows.iter().copied().chain(down).collect();
    runs(
        &windows,
        0x0070_11a7_e506,
        &["several undone", "from several, ahead"],
    );
}

#[test]
fn sharded_intervals_are_their_parts() {
    let intervals = quotas().into_iter().map(Intervals::new);
    let intervals: Vec<_> = intervals.filter_map(Result::ok).collect();
    runs(&intervals, 0x0070_11a7_e507, &["several undone"]);
    let greedy = intervals.iter().filter_map(|bucket| bucket.greedy().ok());
    runs(&greedy.collect::<Vec<_>>(), 0x0070_11a7_e508, &[]);
}

/// Behind the enum, from texts.
#[test]
fn any_sharded_algorithm_is_its_parts() {
    let texts = [
        "token-bucket 100/s burst 20 initial 5",
        "gcra 1/10ms tolerance 25ms",
        "leaky-meter 10/s burst 20",
        "leaky-queue 10/s burst 20 free 5",
        "fixed-window 1000/d utc offset 2h",
        "fixed-window 5/s first-hit",
        "sliding-window 1000/min rounding down",
        "intervals 10/s burst 25 offset 1ms",
        "intervals 10/s burst 25 greedy",
    ];
    let any = texts.map(|text| text.parse::<AnyAlgorithm>().expect(text));
    runs(&any, 0x0070_11a7_e509, &["several undone"]);
}
