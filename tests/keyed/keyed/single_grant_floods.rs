//! A flood whose keys have one grant each resets no key that spent as much or more, whatever part
//! of the burst the flood's keys take, and while that key has regained less than an eighth.

use crate::support::*;

/// Half of the victims have one grant, the others several.
const VICTIMS: u64 = 40;
const CAPACITY: u64 = 1_000;
const FIRST_OF_FLOOD: u64 = 1 << 32;
const MINUTE: u64 = 60_000_000_000;
const BURSTS: [u64; 5] = [2, 3, 10, 100, 1_000];

/// What comes into the table, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The victims, and the flood, which first takes the free slots.
    VictimsFirst,
    /// The victims, keys with one permit up to the capacity, and the flood.
    OthersBetween,
    /// More keys with one permit than there are slots, the victims, and the flood.
    ManyOthersFirst,
}

type Table = Keyed<AnyAlgorithm, ManualClock>;

/// Floods a table with new keys, each with one grant. Returns how many victims have more permits
/// than they were refilled.
fn reset(
    text: &str,
    (burst, spent): (u64, u64),
    order: Order,
    flood: Flood,
    mut takes: impl FnMut() -> u64,
) -> u64 {
    let table: Table = of_capacity(CAPACITY as usize, algorithm(text));
    let others = |n| {
        for key in VICTIMS..n {
            assert!(table.try_acquire(&key).is_ok());
            table.clock().advance(Duration::from_nanos(1));
        }
    };
    if order == Order::ManyOthersFirst {
        others(3 * CAPACITY);
    }
    for key in 0..VICTIMS {
        let several = [1, spent / 2, spent - spent / 2 - 1];
        let one = [spent, 0, 0];
        for part in if key % 2 == 0 { one } else { several } {
            assert!(table.try_acquire_n(&key, part).is_ok());
        }
        table.clock().advance(Duration::from_nanos(1));
    }
    let spent_by = table.clock().now().as_nanos();
    if order == Order::OthersBetween {
        others(CAPACITY);
    }
    for key in 0..KEYS * flood.len() as u64 {
        let lasts = flood[(key / KEYS) as usize];
        table.clock().advance(Duration::from_nanos(lasts / KEYS));
        let granted = table.try_acquire_n(&(FIRST_OF_FLOOD + key), takes());
        assert!(granted.is_ok());
    }
    let elapsed = table.clock().now().as_nanos() - spent_by + VICTIMS;
    let regained = match text.contains("window") {
        true => 0,
        false => u128::from(elapsed) * u128::from(burst) / u128::from(MINUTE),
    };
    let due = burst - spent + regained as u64;
    let victims = 0..VICTIMS;
    victims
        .filter(|key| table.key(key).available() > due)
        .count() as u64
}

/// Returns the hundredths of a burst up to `most`, without repetition. A debug build omits some.
fn parts(burst: u64, most: u64) -> Vec<u64> {
    let step = if cfg!(debug_assertions) { 7 } else { 1 };
    let parts = (1..=100).step_by(step);
    let parts = parts.map(|part| (burst * part).div_ceil(100));
    let mut parts: Vec<_> = parts.filter(|part| *part < most).collect();
    // The parts just below all that a victim spent are the hardest.
    parts.extend([most.saturating_sub(burst.div_ceil(50)).max(1), most]);
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// The nanoseconds in which each [`KEYS`] new keys come.
type Flood = &'static [u64];

const KEYS: u64 = often(3_000);
const FAST: Flood = &[20_000_000];
/// The second part takes a tenth of the time in which the burst refills. Until then keys that came
/// later than the victims have left.
const SLOW: Flood = &[20_000_000, MINUTE / 10];

/// Returns whether all keys in a full table spent the same, so that one of them has to leave.
fn is_all_alike(spent: u64, order: Order) -> bool {
    spent == 1 && order == Order::ManyOthersFirst
}

/// Checks floods whose keys all take the same.
fn all_the_same(bursts: &[u64], orders: &[Order], flood: Flood) {
    let mut reset_by = Vec::new();
    for &burst in bursts {
        for spent in [burst.div_ceil(2), burst] {
            for takes in parts(burst, spent) {
                for &order in orders {
                    if is_all_alike(spent, order) {
                        continue;
                    }
                    let text = format!("token-bucket {burst}/min");
                    let reset = reset(&text, (burst, spent), order, flood, || takes);
                    if reset > 0 {
                        reset_by.push((burst, spent, takes, order, reset));
                    }
                }
            }
        }
    }
    let cases = reset_by.len();
    reset_by.truncate(20);
    assert_eq!(
        reset_by,
        [],
        "(burst, spent, taken, order, reset); {cases} cases"
    );
}

#[test]
fn a_fast_flood_of_equal_grants_resets_no_key_that_spent_as_much() {
    let orders = [Order::VictimsFirst, Order::OthersBetween];
    all_the_same(&BURSTS, &orders, FAST);
}

#[test]
fn a_fast_flood_resets_no_key_that_came_into_a_full_table() {
    all_the_same(&[2, 10, 100], &[Order::ManyOthersFirst], FAST);
}

/// A victim regains a tenth of its burst meanwhile: a hundred permits of a thousand.
#[test]
fn a_slow_flood_of_equal_grants_resets_no_key_that_spent_as_much() {
    all_the_same(&BURSTS, &[Order::OthersBetween], SLOW);
}

/// The flood's keys take different parts of what a victim spent.
#[test]
fn a_flood_of_different_grants_resets_no_key_that_spent_as_much() {
    for burst in BURSTS {
        for spent in [burst.div_ceil(2), burst] {
            for least in [1, spent.div_ceil(2), (spent - spent / 8).max(1)] {
                for (order, flood) in [
                    (Order::VictimsFirst, FAST),
                    (Order::OthersBetween, FAST),
                    (Order::ManyOthersFirst, FAST),
                    (Order::OthersBetween, SLOW),
                ] {
                    if is_all_alike(spent, order) {
                        continue;
                    }
                    let mut random = Random(burst + least);
                    let takes = || least + random.below(spent - least + 1);
                    let text = format!("token-bucket {burst}/min");
                    let reset = reset(&text, (burst, spent), order, flood, takes);
                    assert_eq!(
                        reset, 0,
                        "{burst}, {spent}, from {least}, {order:?}, {flood:?}"
                    );
                }
            }
        }
    }
}

/// All keys of a window become idle at once, so only what they have left tells them apart.
#[test]
fn a_flood_of_equal_grants_resets_no_key_of_a_window_that_spent_as_much() {
    assert_eq!(NOW % 86_400_000_000_000, 7, "a day has just begun");
    for text in ["fixed-window 100/d", "sliding-window 100/d"] {
        for spent in [50, 100] {
            for takes in (1..=spent).step_by(7).chain([spent]) {
                let order = Order::OthersBetween;
                let reset = reset(text, (100, spent), order, FAST, || takes);
                assert_eq!(reset, 0, "{text}, {spent}, {takes}");
            }
        }
    }
}
