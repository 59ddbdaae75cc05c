//! A flood of new keys, with one request each, gives no second burst to a spent or banned key,
//! whether new keys without a slot are denied or admitted. Each key that leaves the table is
//! counted.

use crate::support::*;

/// The number of spent keys, and of banned ones after them.
const SPENT: u64 = 50;
const BURST: u64 = 100;
const FLOOD: u64 = often(5_000);

/// Requests a permit of one new key after each `apart`, while the spent keys ask now and then. Each
/// spent key gets exactly what the bucket refills. Returns how many new keys were granted a permit.
fn flood(limiter: &Keyed<AnyAlgorithm, ManualClock>, apart: Duration, interval: u64) -> u64 {
    for key in 0..SPENT {
        assert!(limiter.try_acquire_n(&key, BURST).is_ok());
        let spent = SPENT + key;
        let banned = limiter.key(&spent).ban(tick(NOW + 3_600 * SECOND));
        assert!(banned.is_ok());
    }
    let (mut allowed, mut granted) = (0, [0; SPENT as usize]);
    for new in 0..FLOOD {
        limiter.clock().advance(apart);
        allowed += u64::from(limiter.try_acquire(&(1_000 + new)).is_ok());
        if let Some(granted) = granted.get_mut((new % (3 * SPENT)) as usize) {
            *granted += u64::from(limiter.try_acquire(&(new % (3 * SPENT))).is_ok());
        }
        assert!(limiter.len() <= limiter.slots());
    }
    let elapsed = apart.as_nanos() as u64 * FLOOD;
    let made = elapsed / interval;
    for (key, granted) in (0..).zip(granted) {
        let left = limiter.key(&key).take_up_to(BURST).n();
        let (of, had) = (limiter, granted + left);
        assert_eq!(had, made, "a spent key got another burst, {of:?}");
        assert!(limiter.try_acquire(&(SPENT + key)).is_err(), "{of:?}");
    }
    assert_eq!(limiter.slots(), 2048);
    allowed
}

/// In a slow flood, keys that asked once are idle long before their slots are needed. All keys of
/// windows are idle at the same time, whatever they took, so spent keys stay to the end.
#[test]
fn idle_keys_make_room_first_and_then_the_overflow_policy_decides() {
    let (interval, never) = (600_000_000, u64::MAX);
    for (text, apart, interval) in [
        ("token-bucket 100/min", 1_000_000, interval),
        ("token-bucket 100/min", 1_000, interval),
        ("fixed-window 100/d", 1_000, never),
        ("sliding-window 100/d", 1_000, never),
        ("intervals 100/d", 1_000, never),
    ] {
        for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
            let limiter = table(algorithm(text)).with_overflow(overflow);
            let allowed = flood(&limiter, Duration::from_nanos(apart), interval);
            let (stats, is_slow) = (limiter.stats_at(tick(0)), apart > 1_000);
            let came = stats.inserted;
            assert_eq!(came, FLOOD + 2 * SPENT - stats.no_room, "{stats:?}");
            let left = stats.expired + stats.evicted;
            assert_eq!(came, stats.tracked + left, "{stats:?}");
            assert_eq!(stats.expired > 0, is_slow, "{stats:?}");
            let (evicts, denies) = (overflow == Overflow::Evict, overflow == Overflow::Deny);
            assert_eq!(stats.evicted > 0, evicts && !is_slow, "{stats:?}");
            assert_eq!(stats.no_room > 0, !evicts && !is_slow, "{stats:?}");
            let denied = if denies { stats.no_room } else { 0 };
            assert_eq!(allowed, FLOOD - denied, "{stats:?}");
            // The table holds as many keys as documented for this number of slots.
            assert!(is_slow || stats.tracked >= 1_400, "{stats:?}");
        }
    }
}

#[test]
fn a_flood_from_several_threads_gives_spent_keys_no_extra_permits() {
    deadline("threads that flood a table", || {
        for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
            let limiter = table(algorithm("token-bucket 100/min")).with_overflow(overflow);
            for key in 0..SPENT {
                assert!(limiter.try_acquire_n(&key, BURST).is_ok());
            }
            limiter.clock().advance(Duration::from_millis(3 * 600));
            let granted = on_threads(0..4, |id| {
                let keys = (0..FLOOD).map(|turn| match id {
                    0 | 1 => 1_000 + id * FLOOD + turn,
                    _ => turn % SPENT,
                });
                let granted = keys.filter(|key| limiter.try_acquire(key).is_ok() && id > 1);
                granted.count() as u64
            });
            assert_eq!(granted.iter().sum::<u64>(), 3 * SPENT, "{overflow:?}");
            let stats = limiter.stats();
            let left = stats.expired + stats.evicted;
            assert_eq!(stats.inserted, stats.tracked + left, "{stats:?}");
        }
    });
}
