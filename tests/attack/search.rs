//! Random search against an exact rational model.

use std::time::Duration;

use tollgate::{Gcra, Granted, LeakyBucket, Limiter, NoClock, Quota, Reserve, Tick, TokenBucket};

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// `n` permits every `period` ns; at most `most + tolerance/period` at once; all rational.
#[derive(Clone, Copy, Debug)]
struct Rate {
    n: i128,
    period: i128,
    /// In parts of a permit: `burst * period` (+ uneven tolerance * n).
    reach: i128,
    /// How much longer an interval counts (for queues), in ns.
    extra: i128,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    tick: i128,
    /// What goes, or came back if negative.
    n: i128,
}

/// Over all intervals: sum * period <= reach + n * length.
fn check(rate: Rate, events: &[Event]) -> Result<(), String> {
    let mut sorted = events.to_vec();
    // What comes back counts in each interval that its tick is in: after what goes at the same tick, or before.
    sorted.sort_by_key(|event| event.tick);
    // max over a <= b of (S(b) - S(a-)) * period - n * (b - a).
    let (mut least, mut sum, mut i) = (i128::MAX, 0_i128, 0);
    while i < sorted.len() {
        let tick = sorted[i].tick;
        let before = sum * rate.period - rate.n * tick;
        least = least.min(before);
        while i < sorted.len() && sorted[i].tick == tick {
            sum += sorted[i].n;
            i += 1;
        }
        let after = sum * rate.period - rate.n * tick;
        let over = after - least - rate.reach - rate.n * rate.extra;
        if over > 0 {
            return Err(format!("{over} / {} permits over at {tick}", rate.period));
        }
    }
    Ok(())
}

struct Held {
    granted: Granted,
    goes: i128,
    live: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mix {
    /// Reserve and cancel of those who are not due, all at the same or different ticks.
    Wait,
    /// With cancel after it is due (net), settle, undo, refund, try, take, charge; ticks never go back.
    Net,
}

fn run<A: Reserve + Copy>(
    algorithm: A,
    rate: Rate,
    burst: u64,
    most: u64,
    lag: u64,
    mix: Mix,
    seed: u64,
    start: u64,
) -> Result<u64, String> {
    let gate = Limiter::unstarted(algorithm, NoClock);
    let mut rng = Rng(seed | 1);
    let mut held: Vec<Held> = Vec::new();
    let mut credits: Vec<Event> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    let interval = (rate.period / rate.n).max(1) as u64;
    let mut clock = start;
    let (mut cancels, mut used) = (0, 0);
    let stale_is_credit = std::env::var_os("STALE_IS_CREDIT").is_some();
    for _ in 0..60 {
        if rng.below(3) == 0 {
            let most = match rng.below(3) {
                0 => 3,
                1 => interval + 2,
                _ => burst * interval * 2 + 2,
            };
            clock = clock.saturating_add(rng.below(most));
        }
        let furthest = match rng.below(2) {
            0 => 3,
            _ => lag + 1,
        };
        let back = if lag > 0 && rng.below(2) == 0 {
            rng.below(furthest)
        } else {
            0
        };
        let now = Tick::from_nanos(clock.saturating_sub(back).max(start.saturating_sub(lag)));
        let view = gate.at(now);
        used = used.max(now.as_nanos());
        let latest_seen: i128 = used.into();
        let waits = held
            .iter()
            .any(|one| one.goes > 0 && one.granted.due() > Tick::from_nanos(clock));
        let verbs = match mix {
            Mix::Wait => 6,
            Mix::Net => 10,
        };
        match rng.below(verbs) {
            0..=2 => {
                let n = 1 + rng.below(most);
                let latest = match rng.below(3) {
                    0 => Tick::MAX,
                    1 => now,
                    _ => now
                        .saturating_add(Duration::from_nanos(rng.below(interval * burst * 3 + 1))),
                };
                if let Ok(granted) = view.reserve_until(n, latest) {
                    if granted.due() > latest && granted.due() > now {
                        return Err(format!("later than latest {said:#?}"));
                    }
                    said.push(format!(
                        "{} reserve {n} due {}",
                        now.as_nanos(),
                        granted.due().as_nanos()
                    ));
                    held.push(Held {
                        granted,
                        goes: n.into(),
                        live: true,
                    });
                }
            }
            3 => {
                if let Ok(granted) = view.try_acquire_n(1 + rng.below(most)) {
                    if lag == 0 && waits && granted.due() <= now {
                        return Err(format!("overtaken by {granted:?} {said:#?}"));
                    }
                    said.push(format!(
                        "{} try {} due {}",
                        now.as_nanos(),
                        granted.n(),
                        granted.due().as_nanos()
                    ));
                    held.push(Held {
                        goes: granted.n().into(),
                        granted,
                        live: mix == Mix::Net,
                    });
                }
            }
            4 | 5 => {
                if held.is_empty() {
                    continue;
                }
                let who = match rng.below(2) {
                    0 => held.len() - 1,
                    _ => rng.below(held.len() as u64) as usize,
                };
                let one = &mut held[who];
                if !one.live || one.granted.n() == 0 {
                    continue;
                }
                let n = 1 + rng.below(one.granted.n());
                if one.granted.due() > now {
                    let (kept, came) = view.cancel(one.granted, n);
                    if came > n {
                        return Err(format!("{came} of {n} came back"));
                    }
                    if kept.due() < now || kept.due() > one.granted.due() {
                        return Err(format!("due moves wrong {said:#?}"));
                    }
                    said.push(format!(
                        "{} cancel {n} of {} due {} back {came}, kept due {}",
                        now.as_nanos(),
                        one.granted.n(),
                        one.granted.due().as_nanos(),
                        kept.due().as_nanos()
                    ));
                    if stale_is_credit && i128::from(one.granted.due().as_nanos()) <= latest_seen {
                        // Gone for all the others.
                        credits.push(Event {
                            tick: latest_seen,
                            n: -i128::from(came),
                        });
                        one.live = false;
                    } else {
                        one.goes -= i128::from(n);
                    }
                    one.granted = kept;
                    cancels += 1;
                } else if mix == Mix::Net {
                    let (kept, came) = view.cancel(one.granted, n);
                    said.push(format!(
                        "{} cancel gone {n} of {} back {came}",
                        now.as_nanos(),
                        one.granted.n()
                    ));
                    one.granted = kept;
                    one.live = false;
                    credits.push(Event {
                        tick: latest_seen,
                        n: -i128::from(came),
                    });
                }
            }
            6 => {
                let granted = view.take_up_to(rng.below(most + 1));
                if lag == 0 && waits && granted.n() > 0 && granted.due() <= now {
                    return Err(format!("overtaken by {granted:?} {said:#?}"));
                }
                if granted.n() > 0 {
                    said.push(format!(
                        "{} take {} due {}",
                        now.as_nanos(),
                        granted.n(),
                        granted.due().as_nanos()
                    ));
                    held.push(Held {
                        goes: granted.n().into(),
                        granted,
                        live: true,
                    });
                }
            }
            7 => {
                if waits {
                    continue;
                }
                let came = view.refund(rng.below(burst + 1));
                said.push(format!("{} refund {came}", now.as_nanos()));
                credits.push(Event {
                    tick: latest_seen,
                    n: -i128::from(came),
                });
            }
            8 => {
                said.push(format!("{} charge", now.as_nanos()));
                let _ = view.charge(rng.below(burst + 1));
            }
            _ => {
                if held.is_empty() {
                    continue;
                }
                let who = rng.below(held.len() as u64) as usize;
                let one = &mut held[who];
                if !waits && one.live && one.granted.due() <= now {
                    let came = view.undo(one.granted);
                    said.push(format!(
                        "{} undo {} back {came}",
                        now.as_nanos(),
                        one.granted.n()
                    ));
                    one.live = false;
                    credits.push(Event {
                        tick: latest_seen,
                        n: -i128::from(came),
                    });
                }
            }
        }
        let mut events = credits.clone();
        for one in held.iter().filter(|one| one.goes > 0) {
            events.push(Event {
                tick: one.granted.due().as_nanos().into(),
                n: one.goes,
            });
        }
        if let Err(error) = check(rate, &events) {
            return Err(format!("{error} after {said:#?}"));
        }
    }
    Ok(cancels)
}

const RATES: [(u64, u64); 14] = [
    (7, 1_000_000_000),
    (300, 1_000_000_000),
    (13, 1_000_000_000),
    (700_000_000, 1_000_000_000),
    (3_000_000_000, 1_000_000_000),
    (1, 365 * 86_400_000_000_000),
    (999_999_937, 1_000_000_000),
    (10_000_000_000, 1_000_000_000),
    (13, 10),
    (13, 7),
    (1, 2),
    (17, 5),
    (9_999_999_967, 1_000_000_000),
    (1, 1_000_000),
];

fn all(mix: Mix, lagging: bool, rounds: u64) -> (u64, Vec<String>) {
    let (mut cancels, mut wrong) = (0, Vec::new());
    for (r, (n, period)) in RATES.into_iter().enumerate() {
        for burst in [1, 2, 3, 5, 20] {
            let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
            let Ok(bucket) = TokenBucket::new(quota) else {
                continue;
            };
            let interval = (period / n).max(1);
            let lag = if lagging { 2 * burst * interval } else { 0 };
            let (n128, p128) = (i128::from(n), i128::from(period));
            let base = Rate {
                n: n128,
                period: p128,
                reach: i128::from(burst) * p128,
                extra: 0,
            };
            for round in 0..rounds {
                let seed = 0x9E37_79B9 * (round + 1) + 77 * r as u64 + burst;
                let start = match round % 3 {
                    0 => 0,
                    1 => 1_000_000_007,
                    _ => 40 * 31_557_600_000_000_000,
                } + lag;
                let mut note = |what: String, result: Result<u64, String>| match result {
                    Ok(c) => cancels += c,
                    Err(error) => {
                        if wrong.len() < 200 {
                            wrong.push(format!(
                                "{what} {n}/{period} burst {burst} lag {lag} seed {seed}: {error}"
                            ))
                        }
                    }
                };
                note(
                    "bucket".into(),
                    run(bucket, base, burst, burst, lag, mix, seed, start),
                );
                if mix == Mix::Wait {
                    for free in [0, 1, 2, burst, burst + 3] {
                        let queue = LeakyBucket::queue(quota).unwrap().free(free);
                        for k in [1, burst] {
                            let most = (free + 1).min(burst).max(k);
                            // Bound of the queue; and never more than the bucket's.
                            let at_once = (free + 1).max(k);
                            let leaving = Rate {
                                reach: i128::from(at_once) * p128,
                                extra: 1,
                                ..base
                            };
                            _ = most;
                            note(
                                format!("queue free {free} k {k}"),
                                run(queue, leaving, burst, k, lag, mix, seed, start),
                            );
                        }
                    }
                }
                if burst > 1 && n == 1 {
                    let uneven = period / 3 + 1;
                    let gcra = Gcra::from_interval(
                        Duration::from_nanos(period),
                        Duration::from_nanos((burst - 1) * period + uneven % period),
                    );
                    if let Ok(gcra) = gcra {
                        let rate = Rate {
                            reach: base.reach + i128::from(uneven % period),
                            ..base
                        };
                        note(
                            "gcra".into(),
                            run(gcra, rate, burst, burst, lag, mix, seed, start),
                        );
                    }
                }
            }
        }
    }
    (cancels, wrong)
}

fn report((cancels, wrong): (u64, Vec<String>)) {
    assert!(cancels > 1000);
    let shortest = wrong.iter().min_by_key(|w| w.len());
    assert!(
        wrong.is_empty(),
        "{} wrong: {}",
        wrong.len(),
        shortest.unwrap()
    );
}

#[test]
fn waiting_keeps_the_bound() {
    report(all(Mix::Wait, false, 150));
}

#[test]
fn waiting_keeps_the_bound_on_lagging_clocks() {
    report(all(Mix::Wait, true, 150));
}

#[test]
fn net_keeps_the_bound() {
    report(all(Mix::Net, false, 300));
}

#[test]
fn net_keeps_the_bound_on_lagging_clocks() {
    report(all(Mix::Net, true, 300));
}

/// The exact bucket with waits of whole nanoseconds, and how late the real one is.
#[test]
fn due_is_the_first_nanosecond_and_at_most_one_later() {
    let mut worst = Vec::new();
    for (n, period) in RATES {
        for burst in [1_u64, 2, 3, 5, 20] {
            let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
            let Ok(bucket) = TokenBucket::new(quota) else {
                continue;
            };
            for whole in [false, true] {
                let gate = Limiter::unstarted(bucket, NoClock);
                let mut rng = Rng(n ^ burst ^ 0x1234_5678_9abc);
                // In parts: ns * n. A permit is `period` of them.
                let (n128, p) = (i128::from(n), i128::from(period));
                let (mut word, mut late, mut early, mut now) = (0_i128, 0, 0, 1_000_003_u64);
                for _ in 0..2000 {
                    if rng.below(50) == 0 {
                        now += rng.below(period / n * burst + 3);
                    }
                    let k = if whole {
                        burst
                    } else {
                        1 + rng.below(burst.saturating_sub(1).max(1))
                    };
                    let Ok(granted) = gate.at(Tick::from_nanos(now)).reserve_until(k, Tick::MAX)
                    else {
                        break;
                    };
                    let need = word - (i128::from(burst) - i128::from(k)) * p;
                    let due = need.div_euclid(n128) + i128::from(need.rem_euclid(n128) != 0);
                    let due = due.max(now.into());
                    word = word.max(due * n128) + i128::from(k) * p;
                    let diff = i128::from(granted.due().as_nanos()) - due;
                    late = late.max(diff);
                    early = early.max(-diff);
                }
                if late > 1 || early > 0 {
                    worst.push(format!(
                        "{n}/{period} burst {burst} {}: late {late} ns, early {early} ns",
                        if whole { "n = burst" } else { "n < burst" }
                    ));
                }
            }
        }
    }
    assert!(worst.is_empty(), "{worst:#?}");
}
