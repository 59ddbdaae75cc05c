//! Threads on one table: whatever they do to hot keys and cold ones, what each key got is within its bound, and one burst
//! more for each time that it was evicted, forgotten or reset.

use std::sync::{Barrier, RwLock};
use std::thread;
use std::time::Duration;

use tollgate::history::{Bound, Bounded, History, Log};
use tollgate::keyed::Seeded;
use tollgate::{AnyAlgorithm, Keep, Keyed, ManualClock, Overflow, Quota, Tick, TokenBucket};

use crate::{Chosen, Random, in_sixteen_slots};

/// Does it on so many threads at once, and gives what each has made.
pub(crate) fn on_threads<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|id| {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(id)
                })
            })
            .collect();
        let made = workers.into_iter().map(|worker| worker.join());
        made.map(|made| made.expect("no panic")).collect()
    })
}

/// What threads do besides taking permits, and how quickly the time goes on.
#[derive(Clone, Copy, PartialEq)]
enum Mix {
    Taking,
    TakingSlowly,
    Everything,
}

type Table = Keyed<AnyAlgorithm, ManualClock, Chosen>;

fn table(text: &str, overflow: Overflow) -> Table {
    let algorithm: AnyAlgorithm = text.parse().expect(text);
    let clock = ManualClock::at(Tick::from_nanos(1_000_000));
    let table = Keyed::with_clock(algorithm, 1, clock).expect("a table");
    table.with_hasher(Chosen::default()).with_overflow(overflow)
}

/// One thread's turns: time goes on by a few nanoseconds in each, and this thread's idea of it is up to `skew` behind or
/// ahead.
fn work(gate: &Table, keys: &[u64], turns: u64, skew: u64, mix: Mix, seed: u64) -> Vec<Log> {
    let mut logs = vec![Log::new(); keys.len()];
    let mut random = Random(seed);
    for _ in 0..turns {
        let step = random.below(if mix == Mix::TakingSlowly { 100 } else { 4 });
        gate.clock().advance(Duration::from_nanos(step));
        let begun = gate.key(&0_u64).now();
        let now = (begun.as_nanos() + random.below(2 * skew + 1)).saturating_sub(skew);
        let now = Tick::from_nanos(now);
        let which = random.skewed(keys.len() as u64) as usize;
        let (key, log) = (gate.key(&keys[which]), &mut logs[which]);
        let choice = match mix {
            Mix::Taking | Mix::TakingSlowly => 8 + random.below(56),
            Mix::Everything => random.below(64),
        };
        match choice {
            0 if random.one_in(30) && key.forget() => {
                log.reset(now).during(begun, key.now());
            }
            1 if random.one_in(30) => {
                key.reset();
                log.reset(now).during(begun, key.now());
            }
            2 => {
                let charged = key.at(now).charge(random.below(5));
                log.charged(&charged).during(begun, key.now());
            }
            3 | 4 => {
                let n = key.at(now).refund(random.below(3));
                log.gave_back(now, n).during(begun, key.now());
            }
            5 if random.one_in(50) => {
                let until = now.saturating_add(Duration::from_nanos(random.below(300)));
                let _ = key.at(now).ban(until);
            }
            6..=20 => {
                let granted = key.at(now).take_up_to(random.below(5));
                log.granted(&granted).during(begun, key.now());
            }
            choice => {
                let Ok(granted) = key.at(now).try_acquire_n(random.below(4)) else {
                    continue;
                };
                log.granted(&granted).during(begun, key.now());
                if mix == Mix::Everything && choice % 4 == 0 {
                    let n = key.at(now).undo(granted);
                    let at = now.max(granted.at());
                    log.gave_back(at, n).during(begun, key.now());
                }
            }
        }
    }
    logs
}

/// The history of each key.
fn record(gate: &Table, keys: &[u64], threads: u64, turns: u64, mix: Mix) -> Vec<History> {
    let seen = on_threads(threads, |id| work(gate, keys, turns, 100 * id, mix, id));
    let mut of_each = vec![Vec::new(); keys.len()];
    for logs in seen {
        for (of_key, log) in of_each.iter_mut().zip(logs) {
            of_key.push(log);
        }
    }
    let histories = of_each.into_iter().map(|logs| logs.into_iter().collect());
    histories.collect()
}

const KINDS: [&str; 5] = [
    "token-bucket 1/10ns burst 7",
    "leaky-meter 3/40ns burst 20",
    "fixed-window 9/500ns",
    "sliding-window 9/500ns",
    "intervals 9/500ns burst 20",
];

/// Few keys, all of them hot, that are always there: and whatever is done to them.
#[test]
fn few_keys_that_all_ask_for() {
    let keys: Vec<u64> = (0..5).map(crate::mix).collect();
    for text in KINDS {
        let gate = table(text, Overflow::Deny);
        let bound = text.parse::<AnyAlgorithm>().expect(text).bound();
        for history in record(&gate, &keys, 4, 6_000, Mix::Everything) {
            let kept = history.check(&bound);
            let summary = kept.unwrap_or_else(|excess| panic!("{excess}, {text}"));
            assert!(summary.granted > 50, "{summary:?} {text}");
        }
        let stats = gate.stats();
        let left = stats.taken_over + stats.evicted + stats.forgotten;
        assert_eq!((stats.tracked, stats.no_room), (stats.inserted - left, 0));
        assert!(stats.forgotten > 0, "{stats:?}");
    }
}

/// Many keys for a few slots, which are another's all the time: nobody gets anything of another's, nor twice.
#[test]
fn many_keys_for_a_few_slots() {
    let keys = in_sixteen_slots(40);
    for text in KINDS {
        for threads in [2, 4] {
            let gate = table(text, Overflow::Deny);
            let bound = text.parse::<AnyAlgorithm>().expect(text).bound();
            for history in record(&gate, &keys, threads, 8_000, Mix::TakingSlowly) {
                if let Err(excess) = history.check(&bound) {
                    panic!("{excess}, {text}");
                }
            }
            let stats = gate.stats();
            assert_eq!((stats.evicted, stats.forgotten), (0, 0));
            assert!(stats.taken_over > 100, "{stats:?} {text}");
            assert_eq!(stats.inserted, stats.tracked + stats.taken_over);
        }
    }
}

/// How many bursts more than its bound each got, in all.
fn bursts_more(histories: &[History], quota: Quota) -> u64 {
    let more = |history: &History| {
        let bound = |bursts| {
            let quota = quota.burst(quota.burst_size() * (1 + bursts));
            Bound::of_quota(quota).expect("a quota")
        };
        let bursts = (0..10_000).find(|bursts| history.check(&bound(*bursts)).is_ok());
        bursts.expect("so many are enough")
    };
    histories.iter().map(more).sum()
}

#[test]
fn who_is_evicted_has_one_burst_more_and_who_is_admitted_without_room_one_each_time() {
    let text = "token-bucket 1/50ns burst 7";
    let quota = Quota::per(1, Duration::from_nanos(50)).burst(7);
    let keys = in_sixteen_slots(100);
    for overflow in [Overflow::Evict, Overflow::Admit] {
        let gate = table(text, overflow);
        let histories = record(&gate, &keys, 4, 8_000, Mix::Taking);
        let (more, stats) = (bursts_more(&histories, quota), gate.stats());
        let allowed = stats.evicted + stats.no_room;
        assert!(allowed > 500, "{stats:?}");
        assert!(more <= allowed, "{more} {stats:?}");
        assert_eq!(
            stats.inserted,
            stats.tracked + stats.taken_over + stats.evicted
        );
        assert!(overflow == Overflow::Evict || stats.evicted == 0);
    }
}

/// By the shortest way, and by the one that all take when the quota has been changed once.
#[test]
fn a_key_that_all_ask_for_gives_its_burst_exactly() {
    let bucket = TokenBucket::new(Quota::per_hour(30_000)).expect("a bucket");
    for changes in [0, 1, 70] {
        let gate = Keyed::with_clock(bucket, 1, ManualClock::new()).expect("a table");
        for _ in 0..changes {
            let same = gate.set_quota(Quota::per_hour(30_000), Keep::Fresh);
            same.expect("a quota");
        }
        let granted = on_threads(4, |_| {
            (0..15_000)
                .filter(|_| gate.try_acquire("key").is_ok())
                .count()
        });
        assert_eq!(granted.iter().sum::<usize>(), 30_000, "{changes} changes");
        assert_eq!(gate.key("key").available(), 0);
    }
}

/// Threads that bring the same new keys at the same time: each is there once, and has one burst.
#[test]
fn keys_that_all_bring_at_once_are_there_once() {
    let bucket = TokenBucket::new(Quota::per_hour(3)).expect("a bucket");
    for seed in 0..20 {
        let gate = Keyed::with_clock(bucket, 1, ManualClock::new()).expect("a table");
        let gate = gate.with_hasher(Seeded::new([seed, 5]));
        let granted = on_threads(4, |_| {
            let mut granted = [0_u64; 300];
            for _ in 0..2 {
                for (key, granted) in granted.iter_mut().enumerate() {
                    *granted += u64::from(gate.try_acquire(&key).is_ok());
                }
            }
            granted
        });
        for key in 0..300 {
            let of_key: u64 = granted.iter().map(|granted| granted[key]).sum();
            assert_eq!(of_key, 3, "{key} {seed}");
        }
        let stats = gate.stats();
        assert_eq!((gate.len(), stats.tracked, stats.inserted), (300, 300, 300));
    }
}

/// Nothing once the ban is there, whatever is given back meanwhile.
#[test]
fn who_is_banned_while_all_ask_gets_nothing_from_then_on() {
    use tollgate::primitive::{AtomicU64, Ordering};
    let bucket = TokenBucket::new(Quota::per_second(1_000_000).burst(50)).expect("a bucket");
    for turn in 0..30 {
        let clock = ManualClock::at(Tick::from_nanos(7));
        let gate = Keyed::with_clock(bucket, 1, clock).expect("a table");
        let is_banned = AtomicU64::new(0);
        let until = Tick::from_nanos(1_000_000_000);
        on_threads(3, |id| {
            for ask in 0..400 {
                if id == 0 && ask == 10 * turn {
                    gate.ban("mallory", until).expect("there is room");
                    // ORDERING: Release. Who sees it comes after the ban.
                    is_banned.fetch_add(1, Ordering::Release);
                }
                // ORDERING: Acquire. As above.
                let banned = is_banned.load(Ordering::Acquire) > 0;
                gate.clock().advance(Duration::from_nanos(200));
                let key = gate.key("mallory");
                match key.try_acquire_n(3) {
                    Ok(granted) if id == 1 => {
                        let back = key.undo(granted);
                        assert!(!banned || back == 0);
                    }
                    Ok(_) => assert!(!banned, "{turn} {ask}"),
                    Err(_) => {
                        let back = key.refund(5);
                        assert!(!banned || back == 0);
                    }
                }
            }
        });
        assert!(gate.key("mallory").at(until).try_acquire().is_err());
    }
}

/// Threads take permits of these keys while the quota changes time and again: each interval has at most the largest burst
/// and what the highest rate makes. Changes come between decisions, so that no tick is older than a change before it: else
/// what the larger rate makes in the difference comes to that, as `Adjustable` says. (That they may cross is modelled.)
fn while_quotas_change(keys: &[u64], quotas: [(u64, u64); 4]) {
    let quotas =
        quotas.map(|(interval, burst)| Quota::per(1, Duration::from_nanos(interval)).burst(burst));
    // Of the quotas the third has the highest rate, and the largest burst.
    let bound = Bound::of_quota(quotas[2]).expect("a quota");
    let gate = table("token-bucket 1/10ns burst 7", Overflow::Deny);
    gate.set_quota(quotas[3], Keep::Fresh).expect("a quota");
    let apart = RwLock::new(());
    let seen = on_threads(4, |id| {
        if id > 0 {
            let turns = (0..600).map(|turn| {
                let _held = apart.read().expect("no panic");
                work(&gate, keys, 10, 0, Mix::Taking, 600 * id + turn)
            });
            return turns.collect();
        }
        for turn in 0..400 {
            let held = apart.write().expect("no panic");
            let quota = quotas[turn % 4];
            gate.set_quota(quota, Keep::AsIs).expect("a quota");
            drop(held);
            thread::yield_now();
        }
        Vec::new()
    });
    let mut granted = 0;
    for key in 0..keys.len() {
        let logs = seen.iter().flatten().filter_map(|logs| logs.get(key));
        let history: History = logs.cloned().collect();
        match history.check(&bound) {
            Ok(summary) => granted += summary.granted,
            Err(excess) => panic!("{excess}, {quotas:?}"),
        }
    }
    assert!(granted > 1000, "{granted}");
}

#[test]
fn quotas_that_change_in_between() {
    let keys: Vec<u64> = (0..4).map(crate::mix).collect();
    let quotas = [(10, 7), (25, 3), (10, 20), (70, 9)];
    while_quotas_change(&keys, quotas);
}

/// Who is idle by a small burst, leaves and comes back has all of a larger one; so here bursts are alike.
#[test]
fn quotas_that_change_while_keys_come_and_go() {
    let quotas = [(15, 20), (25, 20), (10, 20), (70, 20)];
    while_quotas_change(&in_sixteen_slots(40), quotas);
}
