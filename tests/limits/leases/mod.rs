//! Compares leases with two models. The first is their rule: a limiter with a smaller burst, the
//! permits that each lease holds, and the rest of the total. The second is one word with the whole
//! limit, which counts each permit when it is used.

mod draws;
mod exact;
mod model;
mod run;

use tollgate::algorithm::Lend;

use self::model::Model;
use self::run::Run;

use crate::support::*;

/// The events that the comparisons must cover.
const MUST_SEE: &str = "acquire; acquire at its time; without a lease; lease; give_back; drop; \
    nothing left to lend; a smaller lease; a lease as asked; granted 0; held; drawn; \
    a larger draw; a smaller draw; taken from the limiter; later; later, with held permits; \
    in debt; never; stuck; nothing came back; came back; used";

/// Exact buckets, windows and intervals, then those that round.
const TEXTS: [&str; 20] = [
    "token-bucket 1000000000/s burst 100000",
    "token-bucket 10/s burst 30",
    "token-bucket 1000/s burst 1000 initial 7",
    "gcra 1/10ms tolerance 255ms",
    "leaky-meter 7/min burst 20",
    "fixed-window 100/s",
    "fixed-window 7/min offset 3s",
    "sliding-window 100/s",
    "sliding-window 64/min offset 3s",
    "intervals 10/s burst 25",
    "intervals 7/s burst 100",
    "fixed-window 4294967295/min first-hit",
    "fixed-window 5/s first-hit",
    "intervals 100000000000/h greedy",
    "intervals 10/s burst 25 greedy",
    "token-bucket 97/s burst 64",
    "gcra 9999999999/s burst 100",
    "sliding-window 40/s rounding down",
    "token-bucket 1/365d burst 40",
    "fixed-window 100000000000/h first-hit",
];

#[test]
fn leases_match_their_model_and_keep_the_bound_of_the_whole() {
    let operations = debug_or_release(40_000, 1_000_000);
    deadline("leases", move || {
        let (mut random, mut seen) = (Random(0x0070_11a7_e701), Seen::default());
        let bounded = TEXTS[..15].iter().map(|text| (*text, true));
        let cases = bounded.chain(TEXTS.map(|text| (text, false)));
        for (text, is_bounded) in cases.cycle() {
            let algorithm = algorithm(text);
            let total = 1 + random.upto(algorithm.most_lent() - 1);
            let start = tick(random.upto(FIFTY_YEARS / 2));
            let limiter = Leases::with_clock(algorithm, total, ManualClock::at(start));
            let limiter = limiter.expect("it can be lent");
            let seed = random.next();
            let mut run = Run {
                limiter: &limiter,
                model: Model::new(algorithm, total, start),
                leases: Vec::new(),
                period: algorithm.quota().period().as_nanos() as u64,
                random: Random(seed),
                now: start,
                is_bounded,
                seen: Seen::default(),
                label: format!("seed {seed:#x}, {total} of {text}"),
            };
            run.operate(200);
            seen.add(&run.seen);
            if seen.count("operation") >= operations {
                break;
            }
        }
        seen.check(operations, &[MUST_SEE]);
    });
}

/// On an `Arc`, as on a reference.
#[test]
fn an_owned_lease_works_like_a_borrowed_one() {
    let bucket = algorithm("token-bucket 10/s burst 30");
    let limiter = Leases::with_clock(bucket, 20, ManualClock::new()).expect("leases");
    let limiter = Arc::new(limiter);
    let (mut owned, mut lent) = (limiter.lease_owned(15), limiter.lease(15));
    assert_eq!((owned.size(), lent.size()), (15, 5));
    // 30 minus the total of 20 are available. The first lease draws all of them.
    assert_eq!(owned.try_acquire(), Ok(()));
    let later = Denied::later(1, Duration::from_millis(100));
    assert_eq!(lent.try_acquire(), Err(later));
    assert_eq!((owned.held(), lent.held()), (9, 0));
    assert_eq!(owned.give_back(), 9);
    assert_eq!(lent.try_acquire(), Ok(()));
    assert_eq!((lent.held(), limiter.limiter().available()), (4, 4));
}
