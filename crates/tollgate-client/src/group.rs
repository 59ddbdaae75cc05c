//! What is known of a group: the requests to one origin with one credential.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tollgate::{Concurrency, Tick};

use super::pace::Pace;

/// The number of requests that go at once before the first answer says what the limits are.
const OPENING: u32 = 4;

/// After these requests, one goes in each such interval.
const OPENING_INTERVAL: Duration = Duration::from_millis(100);

/// A limit is forgotten after this number of answers that don't name it.
const UNNAMED: u8 = 32;

/// What is known of a group.
#[derive(Debug)]
pub(super) struct Group {
    /// The line. The first in line is inside.
    pub(super) turns: Arc<Concurrency>,
    /// Wakes the first in line.
    pub(super) first: Option<Waker>,
    pub(super) limits: Vec<Link>,
    /// The pace by answers that name no limit, and the waits that they name.
    pub(super) pace: Pace,
    /// How many requests in a row were granted and had an answer that named a limit.
    pub(super) named: u32,
    /// How many answers in a row refused a request and named no wait.
    pub(super) row: u32,
    /// How many requests were sent before the first answer or error. `None` after it.
    opening: Option<u32>,
    last_sent: Tick,
    pub(super) last_answer: Tick,
    pub(super) last_used: Tick,
}

/// A limit that a group's answers name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) limit: u64,
    /// How many answers in a row have not named it.
    pub(super) unnamed: u8,
}

impl Group {
    pub(super) fn new(turns: Arc<Concurrency>, pace: Pace, now: Tick) -> Self {
        Self {
            turns,
            first: None,
            limits: Vec::new(),
            pace,
            named: 0,
            row: 0,
            opening: Some(0),
            last_sent: Tick::ZERO,
            last_answer: now,
            last_used: now,
        }
    }

    /// Returns when the next request may go, if the paces of its limits let it go at `paces`. If no
    /// answer comes, what the server said last holds for `max_hold` at most. Then one request
    /// tries, and the others wait for its answer.
    pub(super) fn next_send(&self, paces: Tick, max_hold: Duration) -> Tick {
        // The last request counts like an answer. Otherwise all requests would go at once after a
        // pause that is longer than `max_hold`.
        let last_tried = self.last_answer.max(self.last_sent);
        let said = paces.max(self.pace.next_send());
        let said = said.min(last_tried.saturating_add(max_hold));
        let opening = match self.opening {
            Some(sent) if sent >= OPENING => self.last_sent.saturating_add(OPENING_INTERVAL),
            _ => Tick::ZERO,
        };
        said.max(opening)
    }

    pub(super) fn sent(&mut self, now: Tick, waited: bool) {
        self.opening = self.opening.map(|sent| sent.saturating_add(1));
        self.pace.sent(now, waited);
        (self.last_sent, self.last_used) = (now, now);
    }

    /// An answer has come, or an error.
    pub(super) fn opens(&mut self) {
        self.opening = None;
    }

    /// Counts an answer that names only some limits. Returns a limit that no answer names any more.
    pub(super) fn names(&mut self, named: &[u64]) -> Option<u64> {
        let mut forgotten = None;
        for link in &mut self.limits {
            let is_named = named.contains(&link.limit);
            link.unnamed = if is_named {
                0
            } else {
                link.unnamed.saturating_add(1)
            };
            if link.unnamed >= UNNAMED {
                forgotten = Some(link.limit);
            }
        }
        self.limits.retain(|link| Some(link.limit) != forgotten);
        forgotten
    }
}
