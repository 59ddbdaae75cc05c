//! When fixed windows end.

/// Bounds of the time at which one window ends. The others end whole windows earlier or later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    bounds: Option<(f64, f64)>,
}

impl Ends {
    pub(super) const fn new() -> Self {
        Self { bounds: None }
    }

    /// A window ends between these times. Returns whether that agrees with the known bounds; if
    /// not, it replaces them.
    pub(super) fn lies_between(&mut self, first: f64, last: f64, window: f64) -> bool {
        let Some((known_first, known_last)) = self.bounds else {
            self.bounds = Some((first, last));
            return true;
        };
        let middles = (first + last - known_first - known_last) / 2.0;
        let later = (middles / window).round() * window;
        let both = (first.max(known_first + later), last.min(known_last + later));
        let agrees = both.0 <= both.1;
        self.bounds = Some(if agrees { both } else { (first, last) });
        agrees
    }

    /// A window ended about at this time.
    pub(super) fn is_about(&mut self, end: f64) {
        self.bounds = Some((end, end));
    }

    /// Returns how long it is from `at` until the window ends. `began` says that `at` is after the
    /// last end, also if that can't be told from the bounds.
    pub(super) fn left(&self, at: f64, window: f64, began: bool) -> Option<f64> {
        let (first, last) = self.bounds?;
        let left = window - (at - (first + last) / 2.0).rem_euclid(window);
        Some(if began && left < window / 2.0 {
            window
        } else {
            left
        })
    }

    /// Returns a time when the window that `at` is in has certainly ended.
    pub(super) fn next_after(&self, at: f64, window: f64) -> Option<f64> {
        let (first, last) = self.bounds?;
        Some(at + self.left(at, window, false)? + (last - first) / 2.0)
    }
}
