//! How a server counts, guessed from its answers.

use super::Answer;
use super::ends::Ends;
use super::reading::{Reading, Window};

/// How a server counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Permits come back evenly. `reset` is the time until all are back: what is missing divided by
    /// the rate. Also a limit whose kind is not known.
    Bucket,
    /// All permits come back at one time. `reset` is the time until then, whatever is left.
    Fixed,
    /// A window that slides. `reset` is the time until the next window ends: longer than a window.
    Sliding,
}

/// Tells from `reset` and from jumps of what is left which kind a limit is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge {
    kind: Kind,
    /// Above zero for a bucket, below for fixed windows.
    score: i32,
}

/// The score is at most this far from zero, so that a few answers can change it.
const MOST: i32 = 4;

/// A window of a second is too short to tell anything by whole seconds.
const SHORT: f64 = 1.0;

impl Judge {
    pub(super) const fn new() -> Self {
        Self {
            kind: Kind::Bucket,
            score: 0,
        }
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Looks at an answer, and notes in `ends` when windows end. Returns whether a new window has
    /// begun since the last answer.
    pub(super) fn sees(
        &mut self,
        window: &Window,
        said: &Reading,
        answer: &Answer,
        before: Option<Answer>,
        granted: bool,
        ends: &mut Ends,
    ) -> bool {
        let is_short = window.seconds <= SHORT;
        let reset = said.reset.filter(|_| !is_short);
        // A server may round `reset` up by a second.
        let longest = window.seconds + if is_short { 0.0 } else { 1.0 };
        if granted && said.reset.is_some_and(|reset| reset > longest) {
            self.kind = if window.is_guessed {
                Kind::Fixed
            } else {
                Kind::Sliding
            };
        }
        if self.kind == Kind::Sliding {
            return false;
        }
        if let Some(reset) = reset {
            // `reset` is rounded up to whole seconds.
            let (first, last) = (answer.sent + reset - 1.0, answer.received + reset);
            let is_end = ends.lies_between(first, last, window.seconds);
            if granted {
                let missing = (window.quota - said.remaining) / window.rate();
                let least = missing - 1.0 / window.rate() - 0.01;
                let is_refill = (least..=missing + 1.01).contains(&reset);
                self.moves(i32::from(is_refill) - i32::from(is_end));
            }
        }
        let began = granted && before.is_some_and(|before| jumped(window, &before, answer));
        if began {
            self.moves(-2);
        }
        let rose = |it: &Answer| answer.sent > it.received && answer.remaining > it.remaining;
        if is_short && self.score < 0 && granted {
            if let Some(before) = before.filter(rose) {
                window_ended(window, &before, answer, ends);
            }
        }
        let is_fixed = self.score < 0 || window.is_guessed;
        self.kind = if is_fixed { Kind::Fixed } else { Kind::Bucket };
        began
    }

    fn moves(&mut self, by: i32) {
        self.score = self.score.saturating_add(by).clamp(-MOST, MOST);
    }
}

/// A short window ended between two answers.
fn window_ended(window: &Window, before: &Answer, now: &Answer, ends: &mut Ends) {
    let (first, last) = (before.sent, now.received);
    if last - first < window.seconds / 2.0 {
        _ = ends.lies_between(first, last, window.seconds);
        return;
    }
    // What is missing was taken since then, at about the whole rate.
    let since = (window.quota - now.remaining) / window.rate();
    let middle = (now.sent + now.received) / 2.0;
    ends.is_about((middle - since).clamp(first, last));
}

/// Returns whether more permits have come back than a bucket refills.
fn jumped(window: &Window, before: &Answer, now: &Answer) -> bool {
    let refilled = window.rate() * (now.received - before.sent) + 1.0;
    now.sent > before.received && now.remaining - before.remaining > refilled
}
