//! How a pace plans: its margin, how fast it corrects errors, and when the next request goes.

use super::kind::Kind;
use super::reading::Window;
use super::{Answer, Pace};

/// The shortest time in which a client corrects an error.
const SHORTEST_CORRECTION: f64 = 0.1;

/// A correction takes this many times the latency of an answer.
const LATENCIES: f64 = 4.0;

/// The next request corrects this part of an error that a request saw.
const GAIN: f64 = 0.8;

/// A request waits at most this many times as long as usual because too few permits are left.
const SLOWEST: f64 = 4.0;

/// No request waits longer than this for its turn, or than the window if that is longer.
const LONGEST_INTERVAL: f64 = 600.0;

/// A bucket keeps this part of its permits, or of a refill of [`BUCKET_TIME`] if that is less.
const BUCKET_MARGIN: f64 = 0.6;
const BUCKET_TIME: f64 = 5.0;

/// A bucket keeps at least this part of its permits, or of [`SLOW_BUCKET_QUOTA`] if that is less:
/// with fewer, a client can't see what other clients take.
const SLOW_BUCKET_MARGIN: f64 = 0.3;
const SLOW_BUCKET_QUOTA: f64 = 40.0;

/// A window keeps this part of its permits. Kept permits are not used, so the part is below 5 %.
const WINDOW_MARGIN: f64 = 0.04;

/// A window of few permits keeps this number, but at most this part.
const FEW_IN_WINDOW: f64 = 7.0;
const MOST_WINDOW_MARGIN: f64 = 0.15;

/// A window keeps at least this number of permits.
const LEAST_WINDOW_MARGIN: f64 = 1.2;

/// A client that is alone keeps this part of the margin of a window.
const ALONE_MARGIN: f64 = 0.7;

/// In fixed windows of at least this length, half of the permits can be used at once if the window
/// before ended with [`SLACK`] of them left. Otherwise they are spread evenly.
const LONG_WINDOW: f64 = 10.0;
pub(super) const SLACK: f64 = 0.25;

impl Pace {
    /// Compares what all clients took between two answers with what they should have taken.
    pub(super) fn learn(&mut self, window: &Window, before: Answer, now: Answer) {
        let time = now.sent - before.sent;
        let weight = 1.0 - (-time / window.seconds).exp();
        self.mean += (now.remaining - self.mean) * weight;
        let refill = self.refill(window);
        let came_back = match self.judge.kind() {
            // Permits come back only when a window ends. As many are assumed to be taken then as
            // planned.
            Kind::Fixed if now.remaining <= before.remaining => 0.0,
            Kind::Fixed => refill * time - (before.remaining - now.remaining),
            // All permits are back, at an unknown time. At least those that were missing came back.
            Kind::Bucket | Kind::Sliding if now.remaining >= window.quota - 1.0 => {
                window.quota - before.remaining
            }
            Kind::Bucket | Kind::Sliding => refill * time,
        };
        let taken = before.remaining - now.remaining + came_back;
        let wanted = refill + self.spare / self.correction(true);
        let correction = self.correction(false);
        let rates = (wanted, refill);
        self.share
            .learns(window, (taken, time), rates, correction, self.waited);
    }

    /// Returns how many permits are left, compared with the plan.
    pub(super) fn level(
        &self,
        window: &Window,
        answer: &Answer,
        began: bool,
        granted: bool,
    ) -> f64 {
        let planned = match self.judge.kind() {
            Kind::Fixed => {
                let at = (answer.sent + answer.received) / 2.0;
                let left = self.ends.left(at, window.seconds, began);
                left.map_or(0.0, |left| self.refill(window) * left)
            }
            Kind::Bucket | Kind::Sliding => 0.0,
        };
        let refused = if granted { 0.0 } else { 1.0 };
        answer.remaining - planned - refused
    }

    /// Returns the margin of a client that has the limit for itself.
    pub(super) fn most_margin(&self, window: &Window) -> f64 {
        let rate = window.rate();
        let most = match self.judge.kind() {
            Kind::Bucket => {
                let seconds = BUCKET_MARGIN * window.quota.min(rate * BUCKET_TIME);
                seconds.max(SLOW_BUCKET_MARGIN * window.quota.min(SLOW_BUCKET_QUOTA))
            }
            Kind::Sliding | Kind::Fixed => {
                let few = FEW_IN_WINDOW.min(MOST_WINDOW_MARGIN * window.quota);
                let most = (WINDOW_MARGIN * window.quota)
                    .max(few)
                    .max(LEAST_WINDOW_MARGIN);
                match self.share.is_alone() {
                    true => ALONE_MARGIN * most,
                    false => most,
                }
            }
        };
        // A request takes one permit, so at most the others are left.
        most.min(BUCKET_MARGIN * (window.quota - 1.0).max(0.0))
    }

    /// Returns whether many permits were left when the window before ended.
    fn had_slack(&self, window: &Window) -> bool {
        self.least_before > SLACK * window.quota
    }

    /// Returns how many permits should be used in a second if as many are left as planned.
    fn refill(&self, window: &Window) -> f64 {
        match self.judge.kind() {
            Kind::Bucket => window.rate(),
            Kind::Fixed if window.seconds >= LONG_WINDOW && self.had_slack(window) => {
                window.rate() / 2.0
            }
            Kind::Fixed => window.rate(),
            // As many permits come back as were taken a window ago.
            Kind::Sliding => {
                let used = 1.0 - self.mean / window.quota;
                window.rate() * used.max(0.05)
            }
        }
    }

    /// Returns the time constant of a correction. If a bucket has enough spare permits for each
    /// client to send one request within its usual interval, answers come often enough for a fast
    /// correction.
    fn correction(&self, with_spare: bool) -> f64 {
        let rate = self.limit.map_or(1.0, |window| window.rate());
        let is_fast = with_spare && self.judge.kind() == Kind::Bucket;
        let spare = if is_fast { self.spare.max(0.0) } else { 0.0 };
        let own = 1.0 / (self.share.get() * rate) / GAIN - spare / rate;
        own.max(LATENCIES * self.latency).max(SHORTEST_CORRECTION)
    }

    /// Returns the time from one request to the next if as many permits are left as planned.
    pub(super) fn usual_spacing(&self) -> f64 {
        let Some(window) = self.limit else {
            return 0.0;
        };
        1.0 / (self.share.get() * self.refill(&window))
    }

    pub(super) fn spacing(&self) -> f64 {
        let Some(window) = self.limit else {
            return self.tried.spacing().unwrap_or(0.0);
        };
        let refill = self.refill(&window);
        let more = self.spare / self.correction(true) / refill;
        let factor = if more > 0.0 {
            1.0 / (1.0 + more)
        } else {
            (1.0 - more).min(SLOWEST)
        };
        (self.usual_spacing() * factor).min(self.longest_spacing())
    }

    pub(super) fn longest_spacing(&self) -> f64 {
        self.limit
            .map_or(0.0, |window| window.seconds.max(LONGEST_INTERVAL))
    }

    pub(super) fn next(&self) -> f64 {
        self.last + self.spacing()
    }
}
