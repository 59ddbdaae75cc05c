//! The eviction order for each kind of algorithm: unprotected keys, then protected ones, then
//! banned ones. Within each group, keys that have spent fewer whole permits leave first. Of keys
//! that have spent the same the newest leaves first. Keys in debt leave after those without debt.

use tollgate::algorithm::Debt;
use tollgate::keyed::Key;
use tollgate::store::View;

use crate::support::hooks::Hooked;
use crate::support::*;

type Table<A> = Keyed<A, ManualClock, IdentityState>;
/// A view of a key at a tick.
type OfKey<'t, A> = View<Key<&'t Table<A>>>;

const MILLISECOND: u64 = SECOND / 1000;

/// A use of a key.
struct Used {
    name: &'static str,
    plan: usize,
    /// The nanoseconds before now.
    ago: u64,
    /// The permits taken.
    parts: &'static [u64],
    /// The seconds for which the key is banned afterwards.
    ban: u64,
}

const fn used(name: &'static str, ago: u64, parts: &'static [u64]) -> Used {
    let (plan, ban) = (0, 0);
    Used {
        name,
        plan,
        ago,
        parts,
        ban,
    }
}

impl Used {
    const fn banned(self, ban: u64) -> Self {
        Self { ban, ..self }
    }

    const fn by(self, plan: usize) -> Self {
        Self { plan, ..self }
    }
}

/// Checks that these keys are evicted in this order. They are inserted in orders that depend on a
/// seed, and each takes its parts one by one.
fn leave<A: Algorithm>(
    make: impl Fn() -> Table<A>,
    all: &[Used; 16],
    take: fn(OfKey<'_, A>, &[u64]),
    label: &str,
) {
    for seed in 0..often(4) {
        let limiter = make();
        let (mut random, mut left) = (Random(seed), (0..16).collect::<Vec<_>>());
        let keys = in_sixteen_slots(160);
        while !left.is_empty() {
            let next = left.swap_remove(random.below(left.len() as u64) as usize);
            let used = &all[next];
            let key = limiter.key(&keys[next]).with_plan(used.plan);
            let at = tick(NOW - used.ago);
            take(key.at(at), used.parts);
            if used.ban > 0 {
                let until = tick(NOW + used.ban * SECOND);
                assert!(key.at(at).ban(until).is_ok());
            }
        }
        let mut gone = Vec::new();
        for new in &keys[16..32] {
            // This key stays: it is protected, and banned for longer than others.
            for _ in 0..2 {
                let _ = limiter.key(new).take_up_to(1);
            }
            assert!(limiter.key(new).ban(Tick::MAX).is_ok());
            let all = all.iter().zip(keys);
            let fresh = all.filter(|(of, key)| limiter.key(*key).with_plan(of.plan).is_idle());
            let fresh = fresh.map(|(of, _)| of.name);
            let fresh: Vec<_> = fresh.filter(|name| !gone.contains(name)).collect();
            gone.extend(&fresh);
            assert_eq!(fresh.len(), 1, "{gone:?}, {label}, {seed}");
        }
        let names = all.each_ref().map(|used| used.name);
        assert_eq!(gone, names, "{label}, {seed}");
        let protected = all.iter().filter(|used| used.parts.len() > 1).count();
        let stats = limiter.stats();
        let evicted = (stats.evicted, stats.evicted_protected);
        assert_eq!(evicted, (16, protected as u64), "{stats:?}, {label}");
        assert_eq!((stats.expired, stats.tracked), (0, 16), "{stats:?}");
    }
}

fn charge<A: Debt>(key: OfKey<'_, A>, parts: &[u64]) {
    for part in parts {
        assert_eq!(key.charge(*part).n(), *part);
    }
}

/// All of a hundred permits are available again after a minute, and one after 0.6 seconds.
const IN_A_BUCKET: [Used; 16] = [
    used("1", 0, &[1]),
    used("20", 0, &[20]),
    used("50", 0, &[50]),
    used("50, earlier", 30 * MILLISECOND, &[50]),
    used("99", 0, &[99]),
    used("99, earlier", 300 * MILLISECOND, &[99]),
    used("all", 0, &[100]),
    used("all, earlier", 300 * MILLISECOND, &[100]),
    used("owes 1", 0, &[101]),
    used("owes 2", 0, &[102]),
    used("2 in two", 0, &[1, 1]),
    used("all in three, 1 s ago", SECOND, &[50, 49, 1]),
    used("all in two", 0, &[50, 50]),
    used("owes 1 in two", 0, &[100, 1]),
    used("banned", 0, &[1]).banned(2),
    used("banned, protected", 0, &[1, 1]).banned(1),
];

#[test]
fn keys_of_buckets_are_evicted_in_order() {
    for text in [
        "token-bucket 100/min",
        "gcra 100/min",
        "leaky-meter 100/min",
        "leaky-queue 100/min burst 100 free 10",
    ] {
        leave(|| crowded(algorithm(text)), &IN_A_BUCKET, charge, text);
    }
}

/// All keys of a window are idle at its end, so keys with the most permits left are evicted first.
/// A ban lasts to the end of the window in which it ends.
const IN_A_WINDOW: [Used; 16] = [
    used("1", 0, &[1]),
    used("2", 0, &[2]),
    used("10", 0, &[10]),
    used("11", 0, &[11]),
    used("50", 0, &[50]),
    used("99", 0, &[99]),
    used("all", 0, &[100]),
    used("2 in two", 0, &[1, 1]),
    used("3 in three", 0, &[1, 1, 1]),
    used("40 in two", 0, &[20, 20]),
    used("99 in two", 0, &[98, 1]),
    used("all in two", 0, &[50, 50]),
    used("banned", 0, &[1]).banned(70),
    used("banned longer", 0, &[1]).banned(200),
    used("banned, protected", 0, &[1, 1]).banned(70),
    used("banned longer, protected", 0, &[1, 1]).banned(200),
];

#[test]
fn keys_of_a_window_with_the_most_permits_left_are_evicted_first() {
    for text in [
        "fixed-window 100/min",
        "fixed-window 100/min first-hit",
        "sliding-window 100/min",
        "intervals 100/min",
        "intervals 100/min greedy",
    ] {
        leave(|| crowded(algorithm(text)), &IN_A_WINDOW, charge, text);
    }
}

/// If each key has its own window, only the time until its end is known. Keys whose windows opened
/// earlier are evicted first, in steps, and within a step the newest.
#[test]
fn keys_whose_first_hit_window_ends_first_are_evicted_first() {
    let all = [
        used("40 s ago", 40 * SECOND, &[100]),
        used("19 s ago, 1", 19 * SECOND, &[1]),
        used("20 s ago", 20 * SECOND, &[100]),
        used("now, 1", 0, &[1]),
        used("now, 2", 0, &[2]),
        used("now, all", 0, &[100]),
        used("1 s ago", SECOND, &[1]),
        used("2 s ago", 2 * SECOND, &[1]),
        used("40 s ago, in two", 40 * SECOND, &[50, 50]),
        used("now, 2 in two", 0, &[1, 1]),
        used("now, 3 in two", 0, &[1, 2]),
        used("1 s ago, in two", SECOND, &[1, 1]),
        used("2 s ago, in two", 2 * SECOND, &[1, 1]),
        used("3 s ago, in two", 3 * SECOND, &[1, 1]),
        used("4 s ago, in two", 4 * SECOND, &[1, 1]),
        used("banned", 0, &[1]).banned(70),
    ];
    let text = "fixed-window 100/min first-hit";
    leave(|| crowded(algorithm(text)), &all, charge, text);
}

/// Each key is judged by its own plan: by the share of its burst that it has spent.
#[test]
fn keys_of_several_plans_are_evicted_by_the_share_of_their_burst_spent() {
    let all = [
        used("20 of 1000", 0, &[20]).by(1),
        used("10 of 20", 0, &[10]).by(2),
        used("700 of 1000", 0, &[700]).by(1),
        used("85 of 100", 0, &[85]).by(0),
        used("all of 20, 100 ms ago", 100 * MILLISECOND, &[20]).by(2),
        used("all of 20", 0, &[20]).by(2),
        used("owes 1 of 20", 0, &[21]).by(2),
        used("owes 1 of 100", 0, &[101]).by(0),
        used("owes 1 of 1000", 0, &[1001]).by(1),
        used("2 of 1000 in two", 0, &[1, 1]).by(1),
        used("10 of 20 in two", 0, &[9, 1]).by(2),
        used("85 of 100 in two", 0, &[84, 1]).by(0),
        used("all of 1000 in two", 0, &[1, 999]).by(1),
        used("owes 1 of 20 in two", 0, &[20, 1]).by(2),
        used("owes 1 of 100 in two", 0, &[100, 1]).by(0),
        used("owes 1 of 1000 in two", 0, &[1000, 1]).by(1),
    ];
    let plans = [bucket("100/min"), bucket("1000/d"), bucket("10/s burst 20")];
    for changes in [0, 3] {
        let changed = || {
            let limiter = with_plans(&plans).with_hasher(IdentityState::default());
            for change in 0..changes {
                // The last one is the initial quota.
                let quota = Quota::per_minute(102 - change).burst(100);
                assert!(limiter.set_quota(quota, Keep::AsIs).is_ok());
            }
            limiter
        };
        leave(changed, &all, charge, &format!("{changes} changes"));
    }
}

fn acquire<A: Algorithm>(key: OfKey<'_, A>, parts: &[u64]) {
    for part in parts {
        assert!(key.try_acquire_n(*part).is_ok());
    }
}

/// If an algorithm only tells whether a word is idle, the table searches for the tick at which it
/// will be.
#[test]
fn an_algorithm_that_only_tells_idle_words_has_the_same_eviction_order() {
    const ALL: [Used; 16] = [
        used("1", 0, &[1]),
        used("20", 0, &[20]),
        used("30", 0, &[30]),
        used("50", 0, &[50]),
        used("50, earlier", 30 * MILLISECOND, &[50]),
        used("85", 0, &[85]),
        used("all, 4 s ago", 4 * SECOND, &[100]),
        used("all, 1 s ago", SECOND, &[100]),
        used("all", 0, &[100]),
        used("all, 1 ms ago", MILLISECOND, &[100]),
        used("2 in two", 0, &[1, 1]),
        used("20 in two", 0, &[1, 19]),
        used("85 in two", 0, &[1, 84]),
        used("all in two, 4 s ago", 4 * SECOND, &[50, 50]),
        used("all in two", 0, &[50, 50]),
        used("all in two, 1 ms ago", MILLISECOND, &[50, 50]),
    ];
    leave(|| crowded(Hooked(bucket("100/min"))), &ALL, acquire, "idle");
}

/// A fixed number of permits in total: a key that took one is never idle again.
#[derive(Debug, Clone, Copy)]
struct Total(u64);

impl Algorithm for Total {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        match n <= self.available(word, now) {
            true => Ok((word + n, Granted::new(n, now))),
            false => Err(Denied::never(n, self.0)),
        }
    }

    fn available(&self, word: u64, _now: Tick) -> u64 {
        self.0.saturating_sub(word)
    }

    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

#[test]
fn keys_that_are_never_idle_are_evicted_by_the_permits_they_have_left() {
    const ALL: [Used; 16] = [
        used("1", 0, &[1]),
        used("2", SECOND, &[2]),
        used("10", 0, &[10]),
        used("49", 0, &[49]),
        used("50", 0, &[50]),
        used("97", 0, &[97]),
        used("98", 9 * SECOND, &[98]),
        used("99", 0, &[99]),
        used("all", 0, &[100]),
        used("2 in two", 0, &[1, 1]),
        used("3 in two", 0, &[2, 1]),
        used("10 in two", 0, &[1, 9]),
        used("90 in two", 0, &[1, 89]),
        used("98 in two", 9 * SECOND, &[1, 97]),
        used("99 in two", 0, &[1, 98]),
        used("all in two", 0, &[50, 50]),
    ];
    leave(|| crowded(Total(100)), &ALL, acquire, "never idle");
}

/// A key that was spent by a clock that is ahead by less than a thousandth of the time in which its
/// burst refills counts as the newest. If that clock is further ahead, the key counts as in debt.
#[test]
fn a_key_spent_at_a_slightly_later_tick_counts_as_the_newest() {
    for (ahead, is_newest) in [
        (1, true),
        (58 * MILLISECOND, true),
        (59 * MILLISECOND, false),
    ] {
        let limiter = crowded(bucket("100/min"));
        let keys = in_sixteen_slots(24);
        let (there, new) = keys.split_at(16);
        for (index, key) in (0..).zip(there) {
            let at = NOW + index % 2 * ahead;
            acquire(limiter.key(key).at(tick(at)), &[100]);
        }
        for key in new {
            assert!(limiter.key(key).ban(Tick::MAX).is_ok());
        }
        for (index, key) in there.iter().enumerate() {
            let is_gone = limiter.key(key).is_idle();
            assert_eq!(is_gone, (index % 2 == 1) == is_newest, "{index}, {ahead}");
        }
    }
}

/// To a clock that is behind, all keys seem to have spent more than their burst. Protected keys are
/// still evicted last, even if the tick is the first or the last one.
#[test]
fn protected_keys_are_evicted_last_at_any_tick_of_the_new_key() {
    for at in [
        tick(0),
        tick(NOW - 3_600 * SECOND),
        tick(NOW - SECOND),
        tick(NOW + 30 * SECOND),
    ] {
        let limiter = crowded(bucket("100/min"));
        let keys = in_sixteen_slots(160);
        for (index, key) in keys[..16].iter().enumerate() {
            let parts: &[u64] = if index % 2 == 0 { &[50, 50] } else { &[100] };
            acquire(limiter.key(key).at(tick(NOW)), parts);
        }
        for key in &keys[16..] {
            assert!(limiter.key(key).at(at).try_acquire_n(100).is_ok());
        }
        let stats = limiter.stats_at(at);
        let evicted = (stats.evicted, stats.evicted_protected, stats.expired);
        assert_eq!(evicted, (144, 0, 0), "{stats:?}");
        for key in keys[..16].iter().step_by(2) {
            assert_eq!(limiter.key(key).available(), 0);
        }
    }
}

/// Two plans whose buckets fill in an hour and in a minute, a permit in 36 and in 0.6 seconds.
#[test]
fn the_newest_of_equally_spent_keys_of_two_plans_are_evicted_first() {
    let ms = MILLISECOND;
    let all = [
        used("100/h, 140 s ago", 140_000 * ms, &[100]).by(0),
        used("100/min, 1.3 s ago", 1_300 * ms, &[100]).by(1),
        used("100/h, 60 s ago", 60_000 * ms, &[100]).by(0),
        used("100/h, now", 0, &[100]).by(0),
        used("100/min, 100 ms ago", 100 * ms, &[100]).by(1),
        used("100/h, 200 ms ago", 200 * ms, &[100]).by(0),
        used("100/min, 500 ms ago", 500 * ms, &[100]).by(1),
        used("100/h, 3 s ago", 3_000 * ms, &[100]).by(0),
        used("100/h in two, 140 s ago", 140_000 * ms, &[50, 50]).by(0),
        used("100/min in two, 1.3 s ago", 1_300 * ms, &[50, 50]).by(1),
        used("100/h in two, 60 s ago", 60_000 * ms, &[50, 50]).by(0),
        used("100/h in two, now", 0, &[50, 50]).by(0),
        used("100/min in two, 100 ms ago", 100 * ms, &[50, 50]).by(1),
        used("100/h in two, 200 ms ago", 200 * ms, &[50, 50]).by(0),
        used("100/min in two, 500 ms ago", 500 * ms, &[50, 50]).by(1),
        used("100/h in two, 3 s ago", 3_000 * ms, &[50, 50]).by(0),
    ];
    let plans = [bucket("100/h"), bucket("100/min")];
    let table = || with_plans(&plans).with_hasher(IdentityState::default());
    leave(table, &all, charge, "two plans");
}

/// An eighth means an eighth of the burst of the key's plan. (Time is measured in the largest power
/// of two that fits at least eight times in the time of a whole burst. For 1000 a day and 100 a
/// minute that time is 9.8 and 14.0 of these units.)
#[test]
fn a_key_that_spent_a_hundredth_is_evicted_before_one_of_another_plan_that_spent_a_quarter() {
    let limiter = with_plans(&[bucket("100/min"), bucket("1000/d")]);
    let limiter = limiter.with_hasher(IdentityState::default());
    let keys = in_sixteen_slots(17);
    for (index, key) in keys[..16].iter().enumerate() {
        let (plan, n) = if index % 2 == 0 { (0, 25) } else { (1, 10) };
        assert_eq!(limiter.key(key).with_plan(plan).charge(n).n(), n);
    }
    assert!(limiter.try_acquire_n(&keys[16], 100).is_ok());
    let left = |index: usize| !limiter.key(&keys[index]).with_plan(index % 2).is_idle();
    let busy: Vec<_> = (0..16).filter(|index| left(*index)).collect();
    let gone = (0..16).find(|index| !busy.contains(index));
    assert_eq!(gone.map(|index| index % 2), Some(1), "of 1000 a day");
}
