use core::time::Duration;

use crate::clock::Tick;

/// Notices a timer that does not follow the limiter's clock, such as tokio's timer in paused time
/// beside the system's clock: it would sleep again and again, and the clock would not move.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SleepCheck {
    began: Tick,
    asked: Duration,
    /// How long the last sleeps were that the clock did not follow.
    in_vain: Duration,
}

/// A coarse clock may stand still for a while.
const MOST_IN_VAIN: Duration = Duration::from_secs(60);

impl SleepCheck {
    pub(crate) const fn new() -> Self {
        Self {
            began: Tick::ZERO,
            asked: Duration::ZERO,
            in_vain: Duration::ZERO,
        }
    }

    /// The timer is asked to sleep for this time.
    pub(crate) fn begins(&mut self, now: Tick, asked: Duration) {
        (self.began, self.asked) = (now, asked);
    }

    /// The timer woke too early. Returns whether the clock moved by less than half of the time, in
    /// each of the last sleeps, of a minute or more together, and of two at least.
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
