//! A request at a tick before that of some shard's word takes no more than was available at its own
//! tick, although it may count at the shard's later one.

use tollgate::algorithm::Split;

use crate::support::*;

#[test]
fn any_algorithm_takes_no_more_than_was_available_at_any_tick() {
    let histories = if cfg!(debug_assertions) { 20 } else { 400 };
    deadline("older ticks", move || {
        let (mut random, mut back, mut full) = (Random(0x5eed_0031), 0_u64, 0_u64);
        for algorithm in algorithms() {
            for _ in 0..histories {
                let most = algorithm.most_shards().clamp(1, 16);
                let shards = 1 + random.below(most) as usize;
                let limiter = Sharded::with_shards(algorithm, shards, ManualClock::new());
                let Ok(limiter) = limiter else { continue };
                let limit = algorithm.available(0, Tick::ZERO);
                let reset = algorithm.step(0, Tick::ZERO, 1).expect("a permit").1;
                let reach = (reset.reset_after().as_nanos() as u64).max(8) * 2;
                let (mut now, mut latest) = (0_u64, 0);
                for _ in 0..60 {
                    let step = random.upto(reach);
                    now = match random.below(3) {
                        0 => now.saturating_sub(step),
                        _ => now.saturating_add(step),
                    };
                    back += u64::from(now < latest);
                    latest = latest.max(now);
                    let shard = random.below(shards as u64) as usize;
                    let view = limiter.at(tick(now)).from_shard(shard);
                    let few = 1 + random.below(3);
                    let n = [few, limit][random.below(2) as usize];
                    let there = view.available();
                    let got = view.take_up_to(n).n();
                    assert_eq!(got, there.min(n), "{n} of {there}: {limiter:?} at {now}");
                    full += u64::from(got > 0);
                }
            }
        }
        assert!(back > 1000 && full > 1000, "{back} and {full}");
    });
}
