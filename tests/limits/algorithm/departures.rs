//! What is given back to a queue lets no later caller leave faster than the queue's rate: nothing
//! comes back while others wait behind the grant.
//!
//! Random callers come to a queue, wait, change their minds and settle. A caller that changes its
//! mind while it waits never leaves. A permit that comes back after its caller has left no longer
//! counts. Then in no interval do more than `max(free + 1, most) + rate * interval` leave.

use tollgate::traits::{ReserveLimiter, SettleLimiter};
use tollgate::{Adjustable, Keyed};

use crate::support::*;

const MS: u64 = 1_000_000;

/// Callers in each history.
const CALLERS: usize = 60;

/// 10 a second, at most 20 in the queue.
fn queue(free: u64) -> LeakyBucket {
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(20)).expect("a queue");
    queue.free(free)
}

fn limiter(free: u64) -> Limiter<LeakyBucket, ManualClock> {
    Limiter::with_clock(queue(free), ManualClock::new())
}

/// Runs a history, and returns when how many left, and when how many came back after they had left.
fn history<L: SettleLimiter<Clock = ManualClock>>(
    limiter: &L,
    most: u64,
    random: &mut Random,
) -> Vec<(u64, i64)> {
    let clock = limiter.clock().clone();
    // The grants of callers that have not given any back.
    let (mut callers, mut left, mut came) = (Vec::<Granted>::new(), Vec::new(), 0);
    while came < CALLERS {
        let now = clock.now().as_nanos();
        match random.below(8) {
            0 => _ = clock.advance(Duration::from_millis(random.below(250))),
            1..5 => {
                came += 1;
                let taken = match random.one_in(4) {
                    true => Ok(limiter.take_up_to(1 + random.below(most))),
                    false => limiter.try_acquire_n(1 + random.below(most)),
                };
                callers.extend(taken);
            }
            _ if callers.is_empty() => {}
            way => {
                // The last in line as often as any other.
                let last = callers.len() - 1;
                let which = last - random.skewed(last as u64 + 1) as usize;
                let granted = callers.remove(which);
                let (n, due) = (granted.n(), granted.due().as_nanos());
                // What a caller costs is known after it has left.
                let unused = match way == 7 && due <= now {
                    true => random.upto(n),
                    false => n,
                };
                let back = match way {
                    5 => limiter.undo(granted),
                    6 => limiter.roll_back_at(granted, clock.now()),
                    _ => limiter.settle(granted, n - unused).returned,
                };
                assert!(back <= unused);
                if due <= now {
                    left.extend([(due, n as i64), (now, -(back as i64))]);
                }
            }
        }
    }
    left.extend(callers.iter().map(leaves));
    left
}

/// Returns when how many leave with this grant.
fn leaves(granted: &Granted) -> (u64, i64) {
    (granted.due().as_nanos(), granted.n() as i64)
}

/// Checks every interval from one tick to another at which permits leave.
fn assert_rate(mut left: Vec<(u64, i64)>, at_once: u64, label: &str) {
    left.sort_unstable();
    for (i, &(begin, _)) in left.iter().enumerate() {
        if i > 0 && left[i - 1].0 == begin {
            continue;
        }
        let mut sum = 0;
        for (j, &(end, n)) in left.iter().enumerate().skip(i) {
            sum += n;
            let is_whole = left.get(j + 1).is_none_or(|next| next.0 > end);
            let most = at_once as i64 + ((end - begin) / (100 * MS)) as i64;
            assert!(
                !is_whole || sum <= most,
                "{label}: {sum} left from {begin} to {end} ns, but at most {most} may: {left:?}"
            );
        }
    }
}

fn histories<L: SettleLimiter<Clock = ManualClock>>(seed: u64, new: impl Fn(u64) -> L) {
    let mut random = Random(seed);
    for round in 0..2000 {
        let (free, most) = (random.below(4), 1 + random.below(3));
        let left = history(&new(free), most, &mut random);
        let label = format!("seed {seed:#x}, round {round}, free {free}, most {most}");
        assert_rate(left, most.max(free + 1), &label);
    }
}

#[test]
fn callers_that_change_their_minds_let_none_leave_faster_than_the_rate() {
    histories(0x0070_11a7_e701, limiter);
}

#[test]
fn nor_do_those_of_any_other_limiter_of_a_queue() {
    histories(0x0070_11a7_e702, |free| Counted::new(limiter(free)));
    histories(0x0070_11a7_e703, |free| {
        let any = AnyAlgorithm::from(queue(free));
        Limiter::with_clock(any, ManualClock::new())
    });
    histories(0x0070_11a7_e704, |free| {
        let sharded = Sharded::with_shards(queue(free), 1, ManualClock::new());
        sharded.expect("one shard")
    });
    histories(0x0070_11a7_e706, |free| {
        Adjustable::with_clock(queue(free), ManualClock::new())
    });
    histories(0x0070_11a7_e707, |free| {
        let table = Keyed::with_clock(queue(free), 9, ManualClock::new());
        Arc::new(table.expect("a table")).key_owned("alice")
    });
}

#[test]
fn cancelled_reservations_let_none_leave_faster_than_the_rate() {
    let mut random = Random(0x0070_11a7_e705);
    for round in 0..2000 {
        let (free, most) = (random.below(4), 1 + random.below(3));
        let limiter = limiter(free);
        let (clock, mut callers) = (limiter.clock().clone(), Vec::new());
        let mut left = Vec::new();
        for _ in 0..CALLERS {
            let (now, n) = (clock.now(), 1 + random.below(most));
            match random.below(5) {
                0 => _ = clock.advance(Duration::from_millis(random.below(250))),
                1 if !callers.is_empty() => {
                    let which = random.below(callers.len() as u64) as usize;
                    let granted: Granted = callers.remove(which);
                    if granted.due() <= now {
                        left.push(leaves(&granted));
                        continue;
                    }
                    let unused = random.upto(granted.n());
                    let (kept, _) = limiter.cancel_at(granted, unused, now);
                    left.push(leaves(&kept));
                }
                2 if !callers.is_empty() => {
                    let which = random.below(callers.len() as u64) as usize;
                    let granted = callers.remove(which);
                    match granted.due() > now {
                        true => _ = limiter.undo(granted),
                        false => left.push(leaves(&granted)),
                    }
                }
                way => {
                    let latest = now.saturating_add(Duration::from_secs(way));
                    callers.extend(limiter.reserve_until_at(n, latest, now));
                }
            }
        }
        left.extend(callers.iter().map(leaves));
        let label = format!("round {round}, free {free}");
        assert_rate(left, most.max(free + 1), &label);
    }
}

#[test]
fn a_settled_grant_gives_back_its_unused_permits_if_it_is_the_last_in_line() {
    let limiter = limiter(0);
    let [first, last] = [5, 5].map(|n| limiter.try_acquire_n(n).expect("a place"));
    let settled = limiter.settle(first, 1);
    assert_eq!((settled.returned, settled.lost), (0, 4));
    let settled = limiter.settle(last, 2);
    assert_eq!((settled.returned, settled.lost), (3, 0));
    let next = limiter.try_acquire().expect("a place");
    assert_eq!(next.delay(), Duration::from_millis(700), "after 5 and 2");
}

#[test]
fn a_composition_that_is_undone_lets_none_leave_faster_than_the_rate() {
    let clock = ManualClock::new();
    let line = Limiter::with_clock(queue(0), clock.clone());
    let bucket = TokenBucket::new(Quota::per_hour(100)).expect("a bucket");
    let all = All::new((&line, Limiter::with_clock(bucket, clock))).expect("two limits");
    let mut grants: Vec<_> = (0..10)
        .map(|_| all.try_acquire().expect("a place"))
        .collect();
    let last = grants.pop().expect("ten");
    for (i, granted) in grants.into_iter().enumerate() {
        match i % 2 {
            0 => assert_eq!(granted.undo(), 1, "the bucket's"),
            _ => _ = granted.undo_on_drop(),
        }
        assert_eq!(line.available(), 10, "another caller waits behind it");
    }
    assert_eq!(all.available(), 10);
    let next = line.try_acquire().expect("a place");
    assert_eq!(next.delay(), Duration::from_secs(1), "behind the ten");
    assert_eq!(line.undo(next), 1);
    last.undo();
    assert_eq!(line.available(), 11, "it was the last in line");
}
