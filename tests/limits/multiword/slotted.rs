//! Compares the window of slots with a model that remembers the permits taken in each slot.

use super::{MUST_SEE, OPERATIONS, run};
use crate::algorithm::counted::Counted;
use crate::support::subject::{Subject, subject};
use crate::support::verbs::*;
use crate::support::*;

/// Returns the width of a count and the number of distinguishable slots. The width is the largest
/// that leaves numbers for the slots of 50 years, with a partial slot at both ends, and for the
/// slots of two windows.
fn budget(slot: u64, slots: u64) -> (u32, u128) {
    let needed = u128::from(FIFTY_YEARS / slot) + 2;
    let told = |bits: u32| (1_u128 << (63 - bits)) - 1 - 2 * u128::from(slots);
    let fits =
        |bits: &u32| (1_u128 << (63 - bits)) > 2 * u128::from(slots) && told(*bits) >= needed;
    let bits = (1..=62).rev().find(fits).expect("one bit always fits");
    (bits, told(bits))
}

subject!([] SlottedWindow<ManualClock>;
    take_verbs forecast_verbs gauge_verbs give_back_verbs debt_verbs);

/// Permits, a slot's length and the number of slots. 0 permits stand for the largest number that
/// fits.
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

/// Returns these cases, and some for each number of slots.
fn cases() -> impl Iterator<Item = (Quota, u64, Counted)> {
    let mut random = Random(1);
    let most = |slot: u64, slots: u64| {
        let largest = (1 << budget(slot, slots).0) - 1;
        (slot * slots).saturating_mul(10).min(largest)
    };
    let others = (1..=60).chain([1000, 65_535]).map(move |slots| {
        let slot = 1 + random.upto(FIFTY_YEARS / slots - 1);
        (1 + random.upto(most(slot, slots) - 1), slot, slots)
    });
    let shapes = SLOTTED.into_iter().chain(others);
    let quotas = shapes.map(move |(n, slot, slots)| {
        let n = if n == 0 { most(slot, slots) } else { n };
        let (bits, told) = budget(slot, slots);
        let model = Counted::of_slots(n, slot, slots, ((1 << bits) - 1, told));
        (per_ns(n, slot * slots), slots, model)
    });
    // A rate must be at least one a year.
    quotas.filter(|(quota, ..)| {
        quota.period().as_nanos() <= u128::from(quota.permits()) * u128::from(YEAR)
    })
}

#[test]
fn a_slotted_window_matches_its_definition() {
    deadline("a window of slots", || {
        let (mut random, mut seen) = (Random(0x0070_11a7_e401), Seen::default());
        let cases: Vec<_> = cases().collect();
        assert!(cases.len() > 60, "{}", cases.len());
        while seen.count("operation") < OPERATIONS {
            for (quota, slots, model) in &cases {
                let limiter =
                    SlottedWindow::with_clock(*quota, *slots as usize, ManualClock::new());
                let limiter = limiter.expect("a window");
                assert_eq!(limiter.largest_debt(), model.largest_debt());
                let moments = if *slots > 1000 { 20 } else { 100 };
                seen.add(&run(&limiter, model.clone(), &mut random, moments));
            }
        }
        seen.check(OPERATIONS, &[MUST_SEE, SLOTTED_ONLY]);
    });
}

/// The events that only a window of slots can produce.
const SLOTTED_ONLY: &str = "undo; refund; charge; level; none undone; some undone; all undone; refund whole; refund \
    cut; charged; into debt; charge cut; in debt";

#[test]
fn a_foreign_grant_returns_no_more_than_its_permits() {
    let mut random = Random(0x0070_11a7_e404);
    let limiter = SlottedWindow::with_clock(Quota::per_minute(60), 60, ManualClock::new());
    let limiter = limiter.expect("slots");
    for _ in 0..5000 {
        let [n, mark, at] = [0; 3].map(|_| random.upto(u64::MAX));
        let now = tick(at);
        limiter.at(now).charge(random.below(99));
        let counted = limiter.at(now).level().ceil();
        let back = limiter.at(now).undo(Granted::new(n, now).with_mark(mark));
        let left = limiter.at(now).level().ceil();
        assert!(back <= n && left == counted - back, "{limiter:?}");
    }
}
