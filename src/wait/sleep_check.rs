use core::time::Duration;

use crate::clock::Tick;

/// Detects a timer that does not follow the limiter's clock, such as tokio's timer in paused time
/// with the system's clock. Without this check, a future would sleep again and again while the
/// clock does not move.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SleepCheck {
    began: Tick,
    asked: Duration,
    /// The total length of the latest sleeps in a row that the clock did not follow.
    in_vain: Duration,
}

/// How long the clock may fail to follow before that is a mismatch. This is long, since a coarse
/// clock may stand still for a while.
const MOST_IN_VAIN: Duration = Duration::from_secs(60);

impl SleepCheck {
    pub(crate) const fn new() -> Self {
        Self {
            began: Tick::ZERO,
            asked: Duration::ZERO,
            in_vain: Duration::ZERO,
        }
    }

    /// Records that the timer is asked to sleep for this time.
    pub(crate) fn begins(&mut self, now: Tick, asked: Duration) {
        (self.began, self.asked) = (now, asked);
    }

    /// Returns whether the timer does not follow the clock. Call it after the timer woke too early.
    /// It is true if the clock moved by less than half of the requested time in each of the latest
    /// sleeps, at least two in a row and at least a minute in total.
    pub(crate) fn finds_mismatch(&mut self, now: Tick) -> bool {
        let before = self.in_vain;
        let is_followed = now.saturating_since(self.began) >= self.asked / 2;
        self.in_vain = match is_followed {
            true => Duration::ZERO,
            false => before.saturating_add(self.asked),
        };
        before > Duration::ZERO && self.in_vain >= MOST_IN_VAIN
    }
}
