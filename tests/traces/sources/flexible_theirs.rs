//! Computes what rate-limiter-flexible counts from the calls it gets. One of its answers may differ
//! from ours only if it equals the answer computed here.

use tollgate_replay::prelude::*;

/// Stands for a window without an end: a thousand days, longer than any trace.
pub(super) const ENDLESS: Duration = Duration::from_secs(1000 * 86_400);

/// A window of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Negative after a reward of more than was taken.
    pub(super) consumed: i64,
    pub(super) opened_ms: u64,
    pub(super) length: Duration,
}

impl Window {
    fn new(consumed: i64, opened_ms: u64, length: Duration) -> Self {
        Self {
            consumed,
            opened_ms,
            length,
        }
    }

    fn end_ms(&self) -> u64 {
        self.opened_ms + self.length.as_millis() as u64
    }

    /// A window includes its last millisecond.
    pub(super) fn is_open(&self, t_ms: u64) -> bool {
        t_ms < self.end_ms()
    }
}

/// Their configuration.
pub(super) struct Theirs {
    pub(super) points: u64,
    pub(super) duration: Duration,
    /// The length of the block after the hit that exceeds the limit. Zero for no block.
    pub(super) block: Duration,
    pub(super) evenly: bool,
}

impl Theirs {
    fn points(&self) -> i64 {
        self.points as i64
    }

    /// Returns the window after a call that found this window open, or none.
    pub(super) fn after(&self, open: Option<Window>, op: &Op) -> Result<Option<Window>, Malformed> {
        let t = op.args.u64("t")?;
        let n = match op.name.as_str() {
            "get" => return Ok(open),
            "delete" => return Ok(None),
            "block" => {
                let length = Duration::from_secs(op.args.u64("n")?);
                return Ok(Some(Window::new(self.points() + 1, t, length)));
            }
            "reward" => -op.args.i64("n")?,
            _ => op.args.i64("n")?,
        };
        let before = open.unwrap_or(Window::new(0, t, self.duration));
        let consumed = before.consumed + n;
        let one_too_many = before.consumed <= self.points() && consumed > self.points();
        Ok(Some(
            if op.name == "consume" && one_too_many && !self.block.is_zero() {
                Window::new(consumed, t, self.block)
            } else {
                Window::new(consumed, before.opened_ms, before.length)
            },
        ))
    }

    /// Returns whether this is the answer that they must give to a call with these windows before
    /// and after it.
    pub(super) fn says(
        &self,
        before: Option<Window>,
        after: Option<Window>,
        op: &Op,
    ) -> Result<bool, Malformed> {
        let theirs = &op.result;
        let Some(now) = after else {
            return match op.name.as_str() {
                "delete" => Ok(theirs.flag("deleted")? == before.is_some()),
                _ => theirs.flag("none"),
            };
        };
        let ok = now.consumed <= self.points();
        let opened =
            before.is_none_or(|it| it.opened_ms != now.opened_ms || it.length != now.length);
        let first = opened && op.name != "block";
        let left = now.end_ms() as i64 - op.args.i64("t")?;
        let remaining = (self.points() - now.consumed).max(0);
        let mut delay = 0;
        if op.name == "consume" {
            if self.evenly && ok && !first {
                delay = self.share(left, remaining, now.consumed);
            }
            if theirs.flag("ok")? != ok || theirs.i64("delay_ms")? != delay {
                return Ok(false);
            }
        }
        let left = match now.length {
            ENDLESS => -1,
            _ => (left - delay).max(0),
        };
        Ok(theirs.i64("consumed")? == now.consumed
            && theirs.i64("remaining")? == remaining
            && theirs.i64("ms_before_next")? == left
            && theirs.flag("first")? == first)
    }

    /// Returns the rest of the window divided by the remaining hits plus two. If that is less than
    /// one share of the window, returns one share for each hit taken. Both may be negative.
    fn share(&self, left_ms: i64, remaining: i64, consumed: i64) -> i64 {
        let share = (self.duration.as_millis() as u64).div_ceil(self.points) as i64;
        let delay = (left_ms as u64).div_ceil(remaining as u64 + 2) as i64;
        if delay < share {
            consumed * share
        } else {
            delay
        }
    }
}
