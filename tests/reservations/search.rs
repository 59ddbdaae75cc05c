//! Random verbs at rates that are exact and at rates that are not: what goes keeps the bound, in fractions, at the
//! ticks at which it is due.

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
    [burst, most]: [u64; 2],
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
    let mut cancels = 0;
    for _ in 0..60 {
        if rng.below(3) == 0 {
            let most = match rng.below(3) {
                0 => 3,
                1 => interval + 2,
                _ => burst * interval * 2 + 2,
            };
            clock = clock.saturating_add(rng.below(most));
        }
        let now = Tick::from_nanos(clock);
        let view = gate.at(now);
        let tick: i128 = clock.into();
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
                    if waits && granted.due() <= now {
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
                    one.goes -= i128::from(n);
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
                        tick,
                        n: -i128::from(came),
                    });
                }
            }
            6 => {
                let granted = view.take_up_to(rng.below(most + 1));
                if waits && granted.n() > 0 && granted.due() <= now {
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
                    tick,
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
                        tick,
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

fn all(mix: Mix, rounds: u64) -> (u64, Vec<String>) {
    let (mut cancels, mut wrong) = (0, Vec::new());
    for (r, (n, period)) in RATES.into_iter().enumerate() {
        for burst in [1, 2, 3, 5, 20] {
            let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
            let Ok(bucket) = TokenBucket::new(quota) else {
                continue;
            };
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
                };
                let mut note = |what: String, result: Result<u64, String>| match result {
                    Ok(c) => cancels += c,
                    Err(error) => {
                        if wrong.len() < 200 {
                            wrong.push(format!(
                                "{what} {n}/{period} burst {burst} seed {seed}: {error}"
                            ))
                        }
                    }
                };
                note(
                    "bucket".into(),
                    run(bucket, base, [burst, burst], mix, seed, start),
                );
                if mix == Mix::Wait {
                    for free in [0, 1, 2, burst, burst + 3] {
                        let queue = LeakyBucket::queue(quota).unwrap().free(free);
                        for k in [1, burst] {
                            // Bound of the queue; and never more than the bucket's.
                            let at_once = (free + 1).max(k);
                            let leaving = Rate {
                                reach: i128::from(at_once) * p128,
                                extra: 1,
                                ..base
                            };
                            note(
                                format!("queue free {free} k {k}"),
                                run(queue, leaving, [burst, k], mix, seed, start),
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
                            run(gcra, rate, [burst, burst], mix, seed, start),
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
    report(all(Mix::Wait, 50));
}

#[test]
fn net_keeps_the_bound() {
    report(all(Mix::Net, 100));
}
