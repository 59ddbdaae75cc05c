//! Any key works: keys with unusual hashes, keys that collide, and keys that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate::keyed::KeyHasher;

use crate::support::hooks::{Call, HookedKey, at_call, on_calls};
use crate::support::*;

/// Returns hashes that could be mistaken for something else, all different in their last 60 bits.
fn odd_hashes() -> Vec<u64> {
    let all = (1_u64 << 60) - 1;
    let mut hashes = vec![0, all, 0x0FFF_0000_0000_0000, 0xAAA_AAAA_AAAA_AAAA];
    // One bit, all but one, all from one bit up, and all below it.
    for bit in 0..60 {
        hashes.extend([1 << bit, all ^ (1 << bit), all << bit & all, all >> bit]);
    }
    // The values that mark a slot as free, pending, live or banned.
    hashes.extend(0..64);
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

#[test]
fn keys_with_unusual_hashes_work_like_others() {
    let limiter = crowded(bucket("3/h")).with_overflow(Overflow::Deny);
    let hashes = odd_hashes();
    for turn in 0..5 {
        for hash in &hashes {
            assert_eq!(limiter.try_acquire(hash).is_ok(), turn < 3, "{hash:#x}");
        }
    }
    assert_eq!((limiter.len(), limiter.stats().no_room), (hashes.len(), 0));
    for (turn, hash) in hashes.iter().enumerate() {
        assert!(
            limiter.key(hash).remove() && !limiter.key(hash).remove(),
            "{hash:#x}"
        );
        assert_eq!(limiter.len(), hashes.len() - turn - 1);
    }
}

/// Keys are distinguished by 60 bits. Keys with equal bits are the same key.
#[test]
fn keys_with_equal_hashes_share_one_limit() {
    let limiter = crowded(bucket("3/h"));
    let granted = (0..1000).filter(|_| limiter.try_acquire(&77_u64).is_ok());
    assert_eq!((granted.count(), limiter.len()), (3, 1));
    assert_eq!(limiter.key(&(77_u64 | 1 << 63)).available(), 0);
    assert_eq!(limiter.key(&(77_u64 | 1 << 59)).available(), 3);
}

#[test]
fn a_key_that_panics_leaves_the_table_intact() {
    type Tested = Keyed<TokenBucket, tollgate::ManualClock>;
    let limiter = table(bucket("3/h"));
    let verbs: [fn(&Tested, &HookedKey) -> bool; 4] = [
        |limiter, key| limiter.try_acquire(key).is_ok(),
        |limiter, key| limiter.key(key).available() > 0,
        |limiter, key| limiter.key(key).remove(),
        |limiter, key| limiter.key(key).ban(tollgate::Tick::MAX).is_ok(),
    ];
    for key in (0..100).map(HookedKey) {
        for verb in verbs {
            at_call(Call::Hash, 0, || panic!("on purpose"));
            let done = catch_unwind(AssertUnwindSafe(|| verb(&limiter, &key)));
            assert!(done.is_err());
        }
        assert!(limiter.try_acquire(&key).is_ok());
    }
    // The last key of a batch. Whole groups before it may be decided, and each key's limit holds.
    let batch: Vec<_> = (1000..1050).map(HookedKey).collect();
    let mut outcomes = [const { Err(Denied::busy(1)) }; 50];
    let mut hashed = 0;
    on_calls(move |_| {
        hashed += 1;
        assert!(hashed < 50, "on purpose");
        true
    });
    let many = AssertUnwindSafe(|| limiter.try_acquire_batch(&batch, &mut outcomes));
    assert!(catch_unwind(many).is_err());
    let decided = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(limiter.len(), 100 + decided);
    for (key, outcome) in batch.iter().zip(outcomes) {
        let granted = (0..9).filter(|_| limiter.try_acquire(key).is_ok()).count();
        assert_eq!(granted + usize::from(outcome.is_ok()), 3, "{key:?}");
    }
    let stats = limiter.stats();
    assert_eq!((limiter.len(), stats.tracked, stats.no_room), (150, 150, 0));
}

#[test]
fn each_table_has_its_own_seed() {
    let [one, other] = [(); 2].map(|()| Keyed::new(bucket("3/h"), 1).expect("a table"));
    assert_ne!(one.hasher().seed(), other.hasher().seed());
}

#[test]
fn borrowed_and_owned_keys_are_the_same_key() {
    let limiter = table(bucket("3/h"));
    assert!(limiter.try_acquire("alice").is_ok());
    assert!(limiter.try_acquire(&String::from("alice")).is_ok());
    assert!(limiter.try_acquire(&&&"alice").is_ok());
    assert_eq!((limiter.key("alice").available(), limiter.len()), (0, 1));
    assert!(limiter.try_acquire(&[1_u8, 2][..]).is_ok());
    assert!(limiter.try_acquire(&vec![1_u8, 2]).is_ok());
    let actual = (limiter.key(&[1_u8, 2][..]).available(), limiter.len());
    assert_eq!(actual, (1, 2));
}
