//! A client's share of a limit's rate.

use super::reading::Window;

/// In the time of a correction, the share moves by this part of its error.
const SPEED: f64 = 0.25;

/// Answers are remembered for this many times the time of a correction.
const MEMORY: f64 = 2.0;

/// With each correction, a share grows by this in addition. A smaller share grows by a larger part
/// of itself, so that shares become equal also where the margin is too small to tell them apart.
const EQUALIZE: f64 = 0.004;

/// A client that took this part of all taken permits is alone.
const ALONE: f64 = 0.75;

/// A refusal multiplies the share by this.
const REFUSED: f64 = 0.5;

/// With fewer permits than this in a window, the number that is left says almost nothing.
const FEW: f64 = 4.0;
/// With so few permits, each answer makes the share larger by at most this part, until a refusal
/// halves the share.
const SLOW_GROWTH: f64 = 0.01;

/// The logarithms of the smallest and the largest share. A share is above 1 if the server refills
/// faster than it says, because it rounds a window of less than a second up to one.
const LEAST: f64 = -14.0;
const MOST: f64 = 7.0;

/// The logarithm of the least share while no other client takes anything.
const LEAST_WITH_ROOM: f64 = -1.4;

/// The logarithms of the least and the most that a new client begins with.
const BEGIN_LEAST: f64 = -3.0;
const BEGIN_MOST: f64 = -2.0;

/// The share, and what was taken lately.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    logarithm: f64,
    /// The permits that all clients took, in which time, and how many requests this client sent.
    /// Older numbers count less.
    taken: f64,
    time: f64,
    own: f64,
    /// When the last refusal that lowered the share came.
    lowered: f64,
    /// When the share was last raised because there was room.
    raised: f64,
}

impl Share {
    pub(super) const fn new() -> Self {
        Self {
            logarithm: BEGIN_LEAST,
            taken: 0.0,
            time: 0.0,
            own: 0.0,
            lowered: 0.0,
            raised: 0.0,
        }
    }

    pub(super) fn get(&self) -> f64 {
        self.logarithm.exp()
    }

    /// Returns whether the client took most permits that were taken lately.
    pub(super) fn is_alone(&self) -> bool {
        self.own >= ALONE * self.taken
    }

    /// An answer came late, and its request was one of this client's.
    pub(super) fn counts_own(&mut self) {
        self.own += 1.0;
    }

    /// Returns the fourth root, of at most 1.
    pub(super) fn root(&self) -> f64 {
        (self.logarithm.min(0.0) / 4.0).exp()
    }

    /// The first answer. The others are taken to keep `level` permits as their margin. This client
    /// begins with the share that has this margin.
    pub(super) fn begins(&mut self, window: &Window, level: f64, most_margin: f64) {
        let theirs = 4.0 * (level / most_margin).max(0.01).ln();
        let least = BEGIN_LEAST.max((2.0 / window.quota).ln().min(0.0));
        self.logarithm = theirs.clamp(least, BEGIN_MOST.max(least));
    }

    /// All clients took `taken` permits in `time` seconds, and should have taken `wanted` a second.
    pub(super) fn learns(
        &mut self,
        window: &Window,
        (taken, time): (f64, f64),
        (wanted, refill): (f64, f64),
        correction: f64,
        waited: bool,
    ) {
        if time <= 0.0 {
            return;
        }
        let keep = (-time / (MEMORY * correction)).exp();
        self.taken = self.taken * keep + taken;
        self.time = self.time * keep + time;
        self.own = self.own * keep + 1.0;
        let took = (self.taken / self.time).max(0.01 * refill);
        let change = (wanted.max(0.1 * refill) / took).ln().clamp(-1.0, 1.0);
        // A client that does not wait does not use its share, so it learns nothing of more.
        if waited || change < 0.0 {
            let change = change + EQUALIZE / self.get();
            let change = SPEED * change * (time / correction).min(1.0);
            let most = if window.quota < FEW { SLOW_GROWTH } else { 1.0 };
            self.logarithm += change.min(most);
        }
        if self.taken >= 2.0 {
            // This client's part of the taken permits. All clients' parts add up to 1.
            let part = (self.own / self.taken).min(1.0);
            self.logarithm = self.logarithm.max((part / 2.0).ln());
        }
        self.logarithm = self.logarithm.clamp(LEAST, MOST);
    }

    /// No other client took anything lately. The request went at `sent`. If the share was raised
    /// after that, other clients may not have seen the raise yet.
    pub(super) fn has_room(&mut self, window: &Window, sent: f64, received: f64) {
        if window.quota >= FEW && sent >= self.raised {
            self.raised = received;
            let more = (self.logarithm + 2_f64.ln()).max(LEAST_WITH_ROOM);
            self.logarithm = self.logarithm.max(more.min(0.0));
        }
    }

    /// A request that went at `sent` was refused. Requests that had gone before the share was
    /// lowered don't lower it again. Returns whether it was lowered.
    pub(super) fn refused(&mut self, sent: f64, received: f64) -> bool {
        if sent <= self.lowered {
            return false;
        }
        self.logarithm = (self.logarithm + REFUSED.ln()).max(LEAST);
        (self.taken, self.time, self.own) = (0.0, 0.0, 0.0);
        self.lowered = received;
        true
    }
}
