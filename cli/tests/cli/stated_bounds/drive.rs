//! Random requests from a seed, and what was granted to them.

use tollgate::algorithm::ChangeQuota;
use tollgate::clock::NoClock;
use tollgate::{AnyAlgorithm, Limiter, Tick};

/// A small pseudo-random generator. The same seed gives the same numbers.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `sides`.
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides.max(1)
    }
}

/// A limiter that is called at explicit ticks, with a record of its grants.
pub(super) struct Driven {
    limiter: Limiter<AnyAlgorithm, NoClock>,
    pub(super) n: u64,
    pub(super) period_ns: u64,
    pub(super) burst: u64,
    /// The largest difference between ticks.
    pub(super) skew_ns: u64,
    /// The precision to which a window's start is rounded up, or 0 if it is not rounded.
    pub(super) quantum_ns: u64,
    /// When permits were granted, and how many.
    pub(super) taken: Vec<(u64, u64)>,
    /// When permits leave, and how many.
    pub(super) left: Vec<(u64, u64)>,
    /// The largest granted request.
    pub(super) largest: u64,
}

impl Driven {
    pub(super) fn new(text: &str) -> Self {
        let algorithm: AnyAlgorithm = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let quota = algorithm.quota();
        let quantum = match &algorithm {
            AnyAlgorithm::FixedWindow(window) => window.quantum(),
            AnyAlgorithm::Intervals(bucket) => bucket.quantum(),
            _ => None,
        };
        Self {
            quantum_ns: quantum.unwrap_or_default().as_nanos() as u64,
            limiter: Limiter::unstarted(algorithm, NoClock),
            n: quota.permits(),
            period_ns: quota.period().as_nanos() as u64,
            burst: quota.burst_size(),
            skew_ns: 0,
            taken: Vec::new(),
            left: Vec::new(),
            largest: 0,
        }
    }

    /// Requests `n` permits, and returns whether they were granted.
    pub(super) fn ask(&mut self, n: u64, now: u64) -> bool {
        let Ok(granted) = self.limiter.at(Tick::from_nanos(now)).try_acquire_n(n) else {
            return false;
        };
        let at = granted.at();
        self.taken.push((at.as_nanos(), n));
        let leaves = at.saturating_add(granted.delay());
        self.left.push((leaves.as_nanos(), n));
        self.largest = self.largest.max(n);
        true
    }

    /// Takes all available permits.
    pub(super) fn drain(&mut self, now: u64) -> u64 {
        let there = self.limiter.at(Tick::from_nanos(now)).available();
        assert!(there == 0 || self.ask(there, now), "{there} at {now}");
        there
    }

    /// Returns when `n` permits will be available.
    pub(super) fn due(&self, n: u64, now: u64) -> Option<u64> {
        let now = Tick::from_nanos(now);
        let wait = self.limiter.at(now).time_until(n)?;
        Some(now.saturating_add(wait).as_nanos())
    }

    /// Makes random requests. With a skew, some ticks are older by up to that much.
    pub(super) fn run(&mut self, dice: &mut Dice, requests: usize) {
        let mut clock = dice.roll(3 * self.period_ns);
        for _ in 0..requests {
            clock = self.next_tick(dice, clock);
            let now = clock.saturating_sub(dice.roll(2) * dice.roll(self.skew_ns + 1));
            match dice.roll(4) {
                0 => _ = self.drain(now),
                1 => _ = self.ask(1 + dice.roll(self.burst), now),
                _ => _ = self.ask(1, now),
            }
        }
    }

    /// Returns a tick at most two periods ahead: now, near a window's edge or a due time, or
    /// anywhere.
    fn next_tick(&self, dice: &mut Dice, now: u64) -> u64 {
        let period = self.period_ns;
        let edge = (now / period + 1 + dice.roll(2)) * period;
        let due = self.due(1 + dice.roll(self.burst), now).unwrap_or(edge);
        let near = |tick: u64, by: u64| (tick + by).saturating_sub(1).max(now);
        match dice.roll(8) {
            0 => now,
            1 => now + 1,
            2 | 3 => near(edge, dice.roll(3)),
            4 | 5 => near(due, dice.roll(3)),
            6 => now + dice.roll(period / self.n + 2),
            _ => now + dice.roll(2 * period),
        }
    }
}
