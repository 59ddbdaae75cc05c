//! The windows that need more memory than a word, beside their models.

use std::time::Duration;

use tollgate::{ManualClock, Quota, SlidingLog, SlottedWindow, Tick};

use crate::many::OPERATIONS;
use crate::support::driver::Run;
use crate::many::log::Log;
use crate::support::model::Model;
use crate::support::random::Random;
use crate::support::reference::FIFTY_YEARS;
use crate::support::seen::Seen;
use crate::many::slotted::Slotted;
use crate::support::subject::Subject;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const YEAR: u64 = 365 * DAY;

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

/// No rate may be above 10 a nanosecond, or below one a year.
fn is_a_rate(n: u64, period: u64) -> bool {
    n > 0 && n / 10 <= period && period <= n.saturating_mul(YEAR)
}

/// One run of so many moments, from some tick on.
fn run<S: Subject>(gate: &S, model: impl Model, random: &mut Random, moments: u64) -> Seen {
    let seed = random.next();
    let start = match random.below(3) {
        0 => 0,
        1 => FIFTY_YEARS - random.upto(FIFTY_YEARS / 50),
        _ => random.upto(FIFTY_YEARS),
    };
    let label = format!("seed {seed:#x}, start {start}, {gate:?}");
    gate.set(Tick::from_nanos(start));
    let mut run = Run::new(gate, model, seed, start, label);
    run.operate(moments);
    run.seen
}

/// Permits, a slot's length and how many slots; 0 permits stand for as many as fit.
const SLOTTED: [(u64, u64, u64); 24] = [
    (1, 1, 1),
    (3, 1, 3),
    (0, 1, 60),
    (3, 97, 1),
    (7, 1_000, 7),
    (10, SECOND, 1),
    (10, SECOND, 2),
    (100, SECOND / 10, 10),
    (100, 3_333_333, 3),
    (0, SECOND, 60),
    (60, SECOND, 60),
    (1000, SECOND, 59),
    (1000, 60 * SECOND, 61),
    (0, 60 * SECOND, 15),
    (12, 3600 * SECOND, 24),
    (1_000, DAY, 31),
    (0, DAY, 30),
    (2, DAY + 1, 97),
    (1_000_000, SECOND, 3600),
    (0, 7, 1 << 16),
    (9, YEAR - 1, 9),
    (51, FIFTY_YEARS / 50, 50),
    (0, FIFTY_YEARS / 5, 5),
    (0, FIFTY_YEARS, 1),
];

fn slotted() -> Vec<(Quota, u64, Slotted)> {
    let mut random = Random(1);
    let most = |slot: u64, slots: u64| {
        let fastest = (slot * slots).saturating_mul(10);
        Slotted::largest(slot, slots).min(fastest)
    };
    let mut shapes = SLOTTED.to_vec();
    for slots in (1..=60).chain([1000, 65_535]) {
        let slot = 1 + random.upto(FIFTY_YEARS / slots - 1);
        let n = 1 + random.upto(most(slot, slots) - 1);
        shapes.push((n, slot, slots));
    }
    let shapes = shapes.into_iter().map(|(n, slot, slots)| match n {
        0 => (most(slot, slots), slot, slots),
        n => (n, slot, slots),
    });
    let shapes = shapes.filter(|(n, slot, slots)| is_a_rate(*n, slot * slots));
    let cases = shapes.map(|(n, slot, slots)| {
        let quota = per_ns(n, slot * slots);
        (quota, slots, Slotted::new(n, slot, slots))
    });
    cases.collect()
}

#[test]
fn a_window_of_slots_is_what_its_definition_says() {
    let (mut random, mut seen) = (Random(0x0070_11a7_e401), Seen::default());
    let cases = slotted();
    assert!(cases.len() > 60, "{}", cases.len());
    while seen.count("operation") < OPERATIONS {
        for (quota, slots, model) in &cases {
            let gate = SlottedWindow::with_clock(*quota, *slots as usize, ManualClock::new());
            let gate = gate.expect("a window");
            assert_eq!(gate.largest_debt(), model.largest_debt());
            seen.add(&run(&gate, model.clone(), &mut random, 200));
        }
    }
    seen.check(
        OPERATIONS,
        &[
            &MUST_SEE,
            &["undo", "refund", "charge", "level"],
            &SLOTTED_ONLY,
        ],
    );
}

/// All that both must have met.
const MUST_SEE: [&str; 12] = [
    "acquire",
    "acquire before its time",
    "take_up_to",
    "time_until",
    "granted",
    "granted 0",
    "later",
    "never",
    "stuck",
    "a part taken",
    "counted ahead",
    "far away",
];

/// What only a window of slots can do.
const SLOTTED_ONLY: [&str; 9] = [
    "none undone",
    "some undone",
    "all undone",
    "refund whole",
    "refund cut",
    "charged",
    "into debt",
    "charge cut",
    "in debt",
];

/// Permits and a period.
const LOGS: [(u64, u64); 20] = [
    (1, 1),
    (2, 1),
    (3, 1),
    (1, 97),
    (2, 97),
    (3, 1_000),
    (1, SECOND),
    (2, SECOND),
    (3, SECOND),
    (5, 999_999_937),
    (10, SECOND),
    (64, SECOND),
    (100, 60 * SECOND),
    (999, DAY),
    (1000, SECOND),
    (1000, 3600 * SECOND),
    (1024, 30 * DAY + 1),
    (2, YEAR),
    (51, FIFTY_YEARS - 1),
    (1000, FIFTY_YEARS),
];

#[test]
fn a_log_is_what_its_definition_says() {
    let (mut random, mut seen) = (Random(0x0070_11a7_e402), Seen::default());
    while seen.count("operation") < OPERATIONS {
        for (n, period) in LOGS {
            let gate = SlidingLog::with_clock(per_ns(n, period), ManualClock::new());
            let gate = gate.expect("a log");
            seen.add(&run(&gate, Log::new(n, period), &mut random, 400));
        }
    }
    seen.check(OPERATIONS, &[&MUST_SEE]);
}
