//! The slots of a key, compared with a list of their holders, for random operations.

use std::collections::BTreeMap;

use crate::decisions::Random;
use crate::lease::slot_pool::SlotPool;
use crate::lease::slots_held::SlotsHeld;

const UNIT_NS: u64 = 1 << 24;

/// Not a multiple of eight.
const LEASE_NS: u64 = 1000 * UNIT_NS + 5;

/// What the pool means.
#[derive(Debug, Default)]
struct Plain {
    idle: u64,
    /// Of each grant that is not a guard: how many slots it has, and since when.
    grants: BTreeMap<u64, (u64, u64)>,
    guards: Vec<u64>,
    until_ns: u64,
    is_lost: bool,
}

impl Plain {
    fn in_use(&self) -> u64 {
        let grants: u64 = self.grants.values().map(|(n, _)| n).sum();
        grants + self.guards.iter().sum::<u64>()
    }

    /// Slots lapse after their lease, and at most an eighth of it later.
    fn lapse(&mut self, now_ns: u64, in_use: u64) {
        let is_over = |since: u64| now_ns >= since + LEASE_NS;
        let must = |since: u64| now_ns >= since + LEASE_NS + LEASE_NS.div_ceil(8);
        let before = self.in_use();
        self.grants.retain(|_, (_, since)| !must(*since));
        // Those of one generation lapse together, the oldest first.
        while self.in_use() > in_use {
            let oldest = self.grants.iter().min_by_key(|(_, (_, since))| *since);
            let (number, (_, since)) = oldest.map(|(n, it)| (*n, *it)).expect("a grant");
            assert!(is_over(since), "lapses early");
            let _ = self.grants.remove(&number);
        }
        self.idle += before - self.in_use();
    }
}

#[test]
fn a_pool_holds_what_its_callers_have() {
    let mut random = Random(7);
    let mut seen = [0_u32; 8];
    for episode in 0..600 {
        let (pool, mut now_ns, mut plain) = (SlotPool::new(LEASE_NS), 1, Plain::default());
        let mut generations = BTreeMap::new();
        let steps = [UNIT_NS, 30 * UNIT_NS, 300 * UNIT_NS][episode % 3];
        for number in 0..200 {
            now_ns += random.below(steps);
            let has_ended = now_ns >= plain.until_ns;
            if has_ended && plain.in_use() > 0 {
                plain.is_lost = true;
            }
            assert_eq!(pool.is_lost(now_ns), plain.is_lost, "{plain:?}");
            if plain.is_lost {
                assert_eq!(pool.held(), SlotsHeld::LOST);
                assert_eq!(pool.answered(now_ns, 0, 5, now_ns + UNIT_NS * 9, 1), 0);
                assert_eq!(pool.enter(now_ns, 1), None);
                assert_eq!(pool.withdraw(now_ns, 9), (0, 0));
                assert_eq!(pool.leave(now_ns, 1), 0);
                for ((n, _), generation) in plain.grants.values().zip(generations.values()) {
                    assert_eq!(pool.give(now_ns, *generation, *n), 0);
                    assert_eq!(pool.renew(now_ns, *generation, *n), None);
                }
                seen[0] += 1;
                break;
            }
            if has_ended {
                plain.idle = 0;
            }
            match random.below(10) {
                0 => {
                    let keep = random.below(20);
                    let (keeps, returns) = pool.withdraw(now_ns, keep);
                    let stay = plain.idle.min(keep);
                    let expected = (plain.in_use() + stay, plain.idle - stay);
                    assert_eq!((keeps, returns), expected);
                    plain.idle = stay;
                    seen[1] += 1;
                }
                1 | 2 => {
                    let lost = random.below(60).saturating_sub(50);
                    let more = random.below(30);
                    let until_ns = now_ns + random.below(2000) * UNIT_NS;
                    let idle = pool.answered(now_ns, lost, more, until_ns, 4);
                    plain.is_lost = plain.in_use() > 0 && lost > plain.idle;
                    plain.idle = plain.idle.saturating_sub(lost) + more;
                    plain.until_ns = plain.until_ns.max(until_ns / UNIT_NS * UNIT_NS);
                    let is_held = !plain.is_lost && now_ns < plain.until_ns;
                    assert_eq!(idle, if is_held { plain.idle } else { 0 });
                    if !is_held {
                        break;
                    }
                }
                3 if !plain.guards.is_empty() => {
                    let n = plain.guards.pop().expect("a guard");
                    assert_eq!(pool.leave(now_ns, n), n);
                    plain.idle += n;
                }
                4 | 5 if !plain.grants.is_empty() => {
                    let index = random.below(plain.grants.len() as u64) as usize;
                    let (number, (n, _)) = plain.grants.iter().nth(index).expect("a grant");
                    let (number, n) = (*number, *n);
                    let generation = generations[&number];
                    match random.below(3) {
                        0 => {
                            let renewed = pool.renew(now_ns, generation, n).expect("a grant");
                            generations.insert(number, renewed);
                            plain.grants.insert(number, (n, now_ns));
                            seen[2] += 1;
                        }
                        1 => {
                            assert!(pool.adopt(generation, n));
                            let _ = plain.grants.remove(&number);
                            plain.guards.push(n);
                            seen[3] += 1;
                        }
                        _ => {
                            assert_eq!(pool.give(now_ns, generation, n), n);
                            let _ = plain.grants.remove(&number);
                            plain.idle += n;
                            seen[4] += 1;
                        }
                    }
                }
                6 => {
                    let before = plain.in_use();
                    pool.lapse(now_ns);
                    let (in_use, _) = pool.held().at(now_ns);
                    if !has_ended {
                        plain.lapse(now_ns, in_use);
                    }
                    seen[5] += u32::from(plain.in_use() < before);
                }
                _ => {
                    // As the keeper does, so that no word has slots of a generation long ago.
                    pool.lapse(now_ns);
                    if !has_ended {
                        plain.lapse(now_ns, pool.held().at(now_ns).0);
                    }
                    let n = 1 + random.below(4);
                    let entered = pool.enter(now_ns, n);
                    let left = plain.idle.checked_sub(n).filter(|_| !has_ended);
                    assert_eq!(entered.map(|entered| entered.idle), left);
                    let Some(entered) = entered else { continue };
                    plain.idle -= n;
                    plain.grants.insert(number, (n, now_ns));
                    generations.insert(number, entered.generation);
                    seen[6] += 1;
                    seen[7] += u32::from(entered.tells);
                }
            }
            generations.retain(|number, _| plain.grants.contains_key(number));
            let is_held = now_ns < plain.until_ns;
            let expected = (plain.in_use(), plain.idle);
            assert_eq!(
                pool.held().at(now_ns),
                if is_held { expected } else { (0, 0) },
                "{plain:?}"
            );
        }
    }
    println!("{seen:?}");
    assert!(seen.iter().all(|seen| *seen > 100), "{seen:?}");
}

/// A thread that read its clock long ago adds to a newer generation, and one that is faster than
/// the task makes idle what has lapsed.
#[test]
fn no_slot_is_lost_by_clocks_that_differ() {
    let pool = SlotPool::new(LEASE_NS);
    let until_ns = 100 * LEASE_NS;
    let _ = pool.answered(0, 0, 5, until_ns, 0);
    let old = pool.enter(1, 1).expect("a slot").generation;
    // 16 spans later, the generation has the same word.
    let now_ns = 2 * LEASE_NS + 16;
    let new = pool.enter(now_ns, 1).expect("a slot").generation;
    assert_eq!(pool.held().at(now_ns), (1, 4), "the old one has lapsed");
    assert_eq!(pool.give(now_ns, old, 1), 0);
    let late = pool.enter(2, 1).expect("a slot").generation;
    assert_eq!(late, new, "it lapses later");
    assert_eq!(pool.give(now_ns, late, 1), 1);
    assert_eq!(pool.give(now_ns, new, 1), 1);
    assert_eq!(pool.held().at(now_ns), (0, 5));
}
