//! Random verbs at exact and inexact rates: grants keep the bound, in fractions, at the ticks at
//! which they are due.

use tollgate::algorithm::Reserve;
use tollgate::traits::ReserveLimiter;

use super::{RATES, YEAR};
use crate::support::*;

/// The number of runs of each limiter, more in release builds.
const ROUNDS: u64 = debug_or_release(6, 60);

/// The bound: in each interval at most `(at_once + length * n) / period` permits.
#[derive(Clone, Copy, Debug)]
struct Bound {
    n: i128,
    period: i128,
    at_once: i128,
}

impl Bound {
    /// Returns whether all intervals keep it, for permits at these ticks. A negative number is a
    /// return.
    fn is_kept(self, mut events: Vec<(u64, i128)>) -> bool {
        events.sort_by_key(|(tick, _)| *tick);
        // The largest sum of an interval minus what its length allows.
        let (mut least, mut sum) = (i128::MAX, 0);
        events.chunk_by(|a, b| a.0 == b.0).all(|together| {
            let allowed = self.n * i128::from(together[0].0);
            least = least.min(sum * self.period - allowed);
            sum += together.iter().map(|(_, n)| n).sum::<i128>();
            sum * self.period - allowed - least <= self.at_once
        })
    }
}

struct Held {
    granted: Granted,
    /// The permits that are still used.
    goes: u64,
    is_live: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mix {
    /// Permits are reserved, and cancelled before they are due.
    Wait,
    /// They are also cancelled later, undone, refunded, taken and charged.
    Net,
}

/// A case.
#[derive(Debug)]
struct Try {
    bound: Bound,
    burst: u64,
    /// The largest request.
    most: u64,
    mix: Mix,
    seed: u64,
    start: u64,
}

impl Try {
    /// Runs sixty random verbs. Returns how many reservations were cancelled while they waited.
    fn run(&self, limiter: &dyn ReserveLimiter<Clock = NoClock>) -> u64 {
        let (burst, most, mut random) = (self.burst, self.most, Random(self.seed));
        let interval = (self.bound.period / self.bound.n).max(1) as u64;
        let (mut held, mut came_back) = (Vec::<Held>::new(), Vec::new());
        let (mut done, mut cancelled, mut nanos) = (Vec::new(), 0, self.start);
        for _ in 0..60 {
            if random.one_in(3) {
                let most = [3, interval + 2, burst * interval * 2 + 2][random.below(3) as usize];
                nanos = nanos.saturating_add(random.below(most));
            }
            let (now, which) = (tick(nanos), held.len().checked_sub(1));
            let which = which.map(|last| match random.below(2) {
                0 => last,
                _ => random.below(last as u64 + 1) as usize,
            });
            let one_waits = held
                .iter()
                .any(|one| one.goes > 0 && one.granted.due() > now);
            let verb = random.below(if self.mix == Mix::Wait { 6 } else { 10 });
            let n = 1 + random.below(most);
            let mut note = |n, due: Tick| done.push((nanos, verb, n, due.as_nanos()));
            let granted = match (verb, which) {
                (0..=2, _) => {
                    let wait = Duration::from_nanos(random.below(interval * burst * 3 + 1));
                    let latest = [Tick::MAX, now, now.saturating_add(wait)];
                    let latest = latest[random.below(3) as usize];
                    let granted = limiter.reserve_until_at(n, latest, now).ok();
                    let due = granted.as_ref().map(|granted| granted.due());
                    assert!(due.is_none_or(|due| due <= latest.max(now)));
                    granted
                }
                (3, _) => limiter.try_acquire_n_at(n, now).ok(),
                (4 | 5, Some(which)) => {
                    let one = &mut held[which];
                    let is_due = one.granted.due() <= now;
                    if !one.is_live || one.granted.n() == 0 || is_due && self.mix == Mix::Wait {
                        continue;
                    }
                    let n = 1 + random.below(one.granted.n());
                    let granted = std::mem::replace(&mut one.granted, Granted::new(0, now));
                    let before = granted.info();
                    let (kept, back) = limiter.cancel_at(granted, n, now);
                    note(n, kept.due());
                    assert!(back <= n && kept.n() == before.n() - n);
                    if is_due {
                        one.is_live = false;
                        came_back.push((nanos, -i128::from(back)));
                    } else {
                        assert!((now..=before.due()).contains(&kept.due()), "{done:?}");
                        one.goes -= n;
                        cancelled += 1;
                    }
                    one.granted = kept;
                    None
                }
                (6, _) => Some(limiter.take_up_to_at(n - 1, now)),
                (7, _) if !one_waits => {
                    let back = limiter.refund_at(random.below(burst + 1), now);
                    note(back, now);
                    came_back.push((nanos, -i128::from(back)));
                    None
                }
                (8, _) => {
                    note(0, limiter.charge_at(random.below(burst + 1), now).at());
                    None
                }
                (9, Some(which)) if !one_waits => {
                    let one = &mut held[which];
                    if one.is_live && one.granted.due() <= now {
                        let (n, due) = (one.granted.n(), one.granted.due());
                        let kept = Granted::new(n, due);
                        let granted = std::mem::replace(&mut one.granted, kept);
                        let back = limiter.undo_at(granted, now);
                        note(back, now);
                        one.is_live = false;
                        came_back.push((nanos, -i128::from(back)));
                    }
                    None
                }
                _ => continue,
            };
            if let Some(granted) = granted.filter(|granted| granted.n() > 0) {
                note(granted.n(), granted.due());
                let overtakes = verb > 2 && one_waits && granted.due() <= now;
                assert!(!overtakes, "{granted:?} overtakes {done:?}, {self:?}");
                held.push(Held {
                    goes: granted.n(),
                    granted,
                    is_live: verb != 3 || self.mix == Mix::Net,
                });
            }
            let going = held.iter().filter(|one| one.goes > 0);
            let going = going.map(|one| (one.granted.due().as_nanos(), one.goes.into()));
            let events = going.chain(came_back.iter().copied()).collect();
            assert!(self.bound.is_kept(events), "{done:?}, {self:?}");
        }
        cancelled
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn unstarted(algorithm: impl Reserve) -> impl ReserveLimiter<Clock = NoClock> {
    Limiter::unstarted(algorithm, NoClock)
}

/// Runs all limiters of one rate and burst.
fn try_each(mix: Mix, (n, period): (u64, u64), burst: u64, round: u64) -> u64 {
    let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
    let Ok(bucket) = TokenBucket::new(quota) else {
        return 0;
    };
    let at_once = |permits: u64| i128::from(permits) * i128::from(period);
    let run = |at_once, most, limiter: &dyn ReserveLimiter<Clock = NoClock>| {
        let (n, period) = (n.into(), period.into());
        let start = [0, SECOND + 7, 40 * YEAR][round as usize % 3];
        let one = Try {
            bound: Bound { n, period, at_once },
            burst,
            most,
            mix,
            seed: round * 1_000 + burst,
            start,
        };
        one.run(limiter)
    };
    // Unless the rate is exact, the rate of less than a quarter of a nanosecond comes on top.
    let unit = match n / divisor(n, period) {
        ..=11 => 0,
        _ => i128::from(n.div_ceil(4) - 1),
    };
    let mut cancelled = run(at_once(burst) + unit, burst, &unstarted(bucket));
    if mix == Mix::Wait {
        let queue = LeakyBucket::queue(quota).expect("a quota");
        for free in [0, 1, 2, burst, burst + 3] {
            for most in [1, burst] {
                // An interval counts as a nanosecond longer.
                let at_once = at_once((free + 1).max(most)) + i128::from(n);
                cancelled += run(at_once, most, &unstarted(queue.free(free)));
            }
        }
    }
    if burst > 1 && n == 1 {
        let uneven = (period / 3 + 1) % period;
        let tolerance = Duration::from_nanos((burst - 1) * period + uneven);
        if let Ok(gcra) = Gcra::from_interval(Duration::from_nanos(period), tolerance) {
            let at_once = at_once(burst) + i128::from(uneven);
            cancelled += run(at_once, burst, &unstarted(gcra));
        }
    }
    cancelled
}

fn try_all(mix: Mix, rounds: u64) {
    let mut cancelled = 0;
    for rate in RATES {
        for burst in [1, 2, 3, 5, 20] {
            cancelled += (0..rounds)
                .map(|round| try_each(mix, rate, burst, round))
                .sum::<u64>();
        }
    }
    assert!(cancelled > 1000, "{cancelled}");
}

#[test]
fn reservations_keep_the_bound() {
    try_all(Mix::Wait, ROUNDS);
}

#[test]
fn grants_minus_returns_keep_the_bound() {
    try_all(Mix::Net, 2 * ROUNDS);
}
