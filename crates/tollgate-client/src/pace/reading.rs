//! What an answer says of a limit, as numbers to count with.

use crate::server_limits::{ServerLimit, Unit};

/// The longest window that is counted with, in seconds.
const LONGEST: f64 = 400.0 * 24.0 * 3600.0;

/// A limit's quota and its window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) quota: f64,
    pub(super) seconds: f64,
    /// The server did not say how long the window is.
    pub(super) is_guessed: bool,
}

/// What an answer says of a limit's state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) remaining: f64,
    pub(super) reset: Option<f64>,
}

impl Window {
    /// Returns the permits that are refilled in a second.
    pub(super) fn rate(&self) -> f64 {
        self.quota / self.seconds
    }
}

impl Reading {
    /// Reads a limit. `None` if it does not say enough to plan by.
    ///
    /// If there is no window, but a time until the limit resets, the window is taken to be so long
    /// that what is left is used up at a constant rate until then. `rose` says that there are more
    /// permits than in the last answer, so a new window has begun.
    pub(super) fn of(
        limit: &ServerLimit,
        known: Option<Window>,
        rose: bool,
    ) -> Option<(Window, Self)> {
        if limit.unit == Unit::ConcurrentRequests {
            return None;
        }
        let remaining = limit.remaining? as f64;
        let reset = limit.reset.map(|reset| reset.as_secs_f64());
        let most_seen = known.map_or(remaining, |known| known.quota.max(remaining));
        let quota = limit.quota.map_or(most_seen, |quota| quota as f64).max(1.0);
        let said = limit.window.map(|window| window.as_secs_f64());
        let seconds = match (said, known) {
            (Some(seconds), _) => seconds,
            (None, Some(known)) if known.is_guessed && !rose => known.seconds,
            (None, _) => reset? * quota / remaining.max(1.0),
        };
        let window = Window {
            quota,
            seconds: seconds.clamp(0.001, LONGEST),
            is_guessed: said.is_none(),
        };
        Some((window, Self { remaining, reset }))
    }
}
