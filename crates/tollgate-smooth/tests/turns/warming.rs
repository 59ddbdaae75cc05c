//! The limiter that warms up, against another definition: the time that a store takes from empty to
//! its level, as a function of the level. A call costs the difference of two such times.

use crate::support::*;

const CALLS: u64 = debug_or_release(1_000, 5_000);

/// Seconds and permits.
#[derive(Debug)]
struct Model {
    interval: f64,
    warm_up: f64,
    cold: f64,
    /// In the seconds that it takes to fill: full at `warm_up`.
    filled: f64,
    next: f64,
}

impl Model {
    fn max(&self) -> f64 {
        self.warm_up / self.interval * (0.5 + 2.0 / (1.0 + self.cold))
    }

    fn level(&self) -> f64 {
        self.filled / self.warm_up * self.max()
    }

    /// Returns the cost of all permits up to this level: a parabola above the threshold.
    fn worth(&self, level: f64) -> f64 {
        let threshold = 0.5 * self.warm_up / self.interval;
        let above = (level - threshold).max(0.0);
        let part = above / (self.max() - threshold);
        let cold = (self.cold - 1.0) * self.interval;
        level * self.interval + 0.5 * above * part * cold
    }

    fn go_to(&mut self, now: f64) {
        if now > self.next {
            self.filled = (self.filled + now - self.next).min(self.warm_up);
            self.next = now;
        }
    }

    fn take(&mut self, n: f64, now: f64) -> f64 {
        self.go_to(now);
        let (due, level) = (self.next, self.level());
        let left = (level - n).max(0.0);
        let fresh = (n - level).max(0.0) * self.interval;
        self.next += self.worth(level) - self.worth(left) + fresh;
        self.filled = left / self.max() * self.warm_up;
        due
    }
}

fn seconds(tick: Tick) -> f64 {
    tick.as_nanos() as f64 / 1e9
}

fn limiter(rate: f64, warm_up: u64, cold: f64) -> SmoothWarmingUp<NoClock> {
    let limiter = warming_up(rate, Duration::from_millis(warm_up));
    limiter.cold_factor(cold).expect("a factor")
}

#[test]
fn each_turn_matches_the_model() {
    let mut random = Random(3);
    for (rate, warm_up, cold) in [
        (2.0, 4_000, 3.0),
        (1.0, 100, 1.0),
        (0.3, 60_000, 7.5),
        (10.0, 1_000, 3.0),
        (5_000.0, 10_000, 2.0),
        (1e6, 500, 30.0),
    ] {
        let limiter = limiter(rate, warm_up, cold);
        let mut model = Model {
            interval: 1.0 / rate,
            warm_up: warm_up as f64 / 1e3,
            cold,
            filled: warm_up as f64 / 1e3,
            next: 0.0,
        };
        let (mut now, interval) = (0_u64, (1e9 / rate) as u64);
        for _ in 0..CALLS {
            now = match random.below(8) {
                0 => now + random.upto(2 * warm_up * 1_000_000),
                1..=3 => limiter.next_free_at(Tick::ZERO).as_nanos().max(now),
                _ => now + random.below(2 * interval),
            };
            let most = if random.one_in(3) { rate * 2.0 } else { 2.0 };
            let n = 1 + random.upto(most as u64);
            if random.one_in(50) {
                let faster = if random.one_in(2) { 1.25 } else { 0.8 };
                let rate = limiter.rate() * faster;
                limiter.set_rate_at(rate, tick(now)).expect("a rate");
                model.go_to(seconds(tick(now)));
                model.interval = 1.0 / limiter.rate();
                // Every sixteenth change costs a nanosecond.
                model.next = seconds(limiter.next_free_at(Tick::ZERO));
            }
            let due = limiter.reserve_at(n, tick(now)).expect("a turn").due();
            let told = model.take(n as f64, seconds(tick(now)));
            let next = limiter.next_free_at(Tick::ZERO);
            let level = limiter.stored_at(Tick::ZERO);
            // A cost is rounded up by at most a nanosecond. Seconds are doubles here.
            let inexact = 1e-12 * (1.0 + seconds(next));
            let off = seconds(next) - model.next;
            assert!((seconds(due) - told).abs() <= inexact, "{model:?}");
            assert!(
                (-inexact..=1e-9 + inexact).contains(&off),
                "{off} {model:?}"
            );
            let inexact = 1e-9 * (1.0 + model.max());
            assert!(
                (level - model.level()).abs() <= inexact,
                "{level} {model:?}"
            );
            // The model continues from our value, so that rounding does not accumulate.
            model.next = seconds(next);
            model.filled = level / model.max() * model.warm_up;
        }
    }
}

/// From cold to warm takes the warm-up time, and from there to empty half of it.
#[test]
fn a_limiter_warms_up_in_the_warm_up_time() {
    for rate in [4.0, 100.0, 8_000.0] {
        for cold in [1.0, 3.0, 7.0] {
            let limiter = limiter(rate, 6_000, cold);
            let threshold = (3.0 * rate) as u64;
            let above = limiter.max_stored() - threshold as f64;
            assert_eq!(above.fract(), 0.0, "chosen so");
            let _ = limiter.reserve_at(above as u64, Tick::ZERO);
            assert_eq!(limiter.next_free_at(Tick::ZERO), tick(6 * SECOND));
            let _ = limiter.reserve_at(threshold, Tick::ZERO);
            assert_eq!(limiter.next_free_at(Tick::ZERO), tick(9 * SECOND));
            assert_eq!(limiter.stored_at(Tick::ZERO), 0.0);
            // It takes as long to be cold again.
            let half = tick(12 * SECOND);
            assert!((limiter.stored_at(half) / limiter.max_stored() - 0.5).abs() < 1e-9);
            assert!(
                limiter.stored_at(tick(15 * SECOND + 1)) >= limiter.max_stored() * (1.0 - 1e-9)
            );
        }
    }
}
