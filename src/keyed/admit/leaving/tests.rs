//! Comparing words finds a key whose turn comes first.

use super::{Algorithm, EvictionOrder, FirstToLeave, Plans, Probe, SlotState, Tick};
use crate::algorithm::{Debt, TokenBucket};
use crate::keyed::find::{ProbeSeq, Table};
use crate::quota::Quota;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1);
        ((u128::from(self.0) * u128::from(n)) >> 64) as u64
    }
}

/// Writes a key into each slot of a probe sequence: newcomers, unprotected and protected keys, or
/// only some of these. What they have spent is random, about the same, or whole permits. A few owe.
fn crowd(
    (table, probe_seq): (&Table, &ProbeSeq),
    (bucket, now): (&TokenBucket, Tick),
    random: &mut Random,
) {
    let burst = bucket.available(0, Tick::ZERO);
    let reach = bucket.charge(0, Tick::ZERO, burst).0;
    let made = bucket.charge(0, now, burst).0 - reach;
    let (groups, about) = (1 + random.below(7), random.below(reach + 1));
    let width = [4, 40, 400][random.below(3) as usize];
    for (at, was) in table.all_of(probe_seq) {
        let spent = match random.below(4) {
            0 => random.below(reach + 1),
            1 => reach / burst * random.below(burst + 1),
            _ => (about + random.below(reach / width + 2)).min(reach),
        };
        let spent = (spent + random.below(5)).saturating_sub(2).max(1);
        let owes = u64::from(random.below(60) == 0) * (reach / 50 + 1);
        let key = SlotState::live(1 << 12, at.is_second(), 0, 0, made + spent + owes);
        let key = match groups & 1 << random.below(3) {
            1 => key.newcomer_if(true),
            2 => key,
            _ if groups & 4 == 0 => key.newcomer_if(groups & 2 == 0),
            _ => key.protected_if(true),
        };
        table.write_unshared(at, was, key);
    }
}

/// Returns the key that is found by comparing words, once it is checked that no other key's turn
/// comes before. Returns `None` if a key is idle, or if comparing words does not suffice.
fn first(
    probe: &Probe,
    order: &EvictionOrder<'_, TokenBucket>,
    bucket: &TokenBucket,
) -> Option<SlotState> {
    let idle_at = |word| bucket.idle_at(word, order.now);
    let mut least = u64::MAX;
    probe.each(|_, held| least = least.min(held.word()));
    if bucket.is_idle(least, order.now) {
        return None;
    }
    let (_, found) = probe.nth(order.first_in_order(probe, least, idle_at)?)?;
    let mut first = FirstToLeave::new(order.plans, order.version, order.now);
    probe.each(|slot, held| first.consider(slot, held, idle_at(held.word())));
    let (_, right) = first.found()?;
    let scale = order.scale(SlotState::NEVER_USED);
    let turn = |held: SlotState| {
        let until_idle = idle_at(held.word()).saturating_since(order.now);
        scale.turn(held, until_idle.as_nanos() as u64)
    };
    assert_eq!(
        turn(found),
        turn(right),
        "{found:?}, not {right:?}: {scale:?}"
    );
    Some(found)
}

#[test]
fn words_in_order_are_turns_in_order() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut unprotected, mut newcomers, mut protected) = (0, 0, 0);
    for burst in [1, 2, 3, 7, 8, 9, 10, 64, 100, 1000, 1 << 20] {
        for quota in [
            Quota::per_minute(burst),
            Quota::per_second(13).burst(burst),
            Quota::per_second(7_777_777_777).burst(burst),
        ] {
            let bucket = TokenBucket::new(quota).expect("a bucket");
            let plans = Plans::one(bucket);
            let table = Table::with_capacity(1).expect("enough memory");
            let probe_seq = table.probe_seq(77 << 40 | 12345);
            for _ in 0..400 {
                let now = Tick::from_nanos(1_000_000_000 + random.below(1 << 50));
                crowd((&table, &probe_seq), (&bucket, now), &mut random);
                let order = EvictionOrder::new(&plans, 0, now);
                match first(&table.look(&probe_seq), &order, &bucket) {
                    Some(held) if held.is_newcomer() => newcomers += 1,
                    Some(held) if held.is_protected() => protected += 1,
                    Some(_) => unprotected += 1,
                    None => {}
                }
            }
        }
    }
    let found = [unprotected, newcomers, protected];
    assert!(found.iter().all(|n| *n > 1000), "{found:?}");
}
