use crate::clock::Tick;
use crate::outcome::{Charged, Granted};

/// Permits taken at a tick: granted, or charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taking {
    pub(super) tick: Tick,
    pub(super) n: u64,
    pub(super) is_charge: bool,
    pub(super) took: Span,
}

/// Permits, or whole bursts, that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Credit {
    pub(super) n: u64,
    pub(super) is_reset: bool,
    pub(super) took: Span,
}

/// When a verb began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) begun: Tick,
    pub(super) done: Tick,
}

impl Span {
    const fn at(tick: Tick) -> Self {
        Self {
            begun: tick,
            done: tick,
        }
    }
}

/// What one thread saw.
///
/// ```
/// use tollgate::audit::Log;
/// use tollgate::Tick;
///
/// let mut log = Log::new();
/// log.grant(Tick::from_nanos(5), 2);
/// log.gave_back(Tick::from_nanos(6), 1);
/// assert_eq!(log.len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    pub(super) takings: Vec<Taking>,
    pub(super) credits: Vec<Credit>,
}

impl Log {
    /// An empty log.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            takings: Vec::new(),
            credits: Vec::new(),
        }
    }

    /// An empty log with room for so many grants, so that recording them does not allocate.
    #[must_use]
    pub fn with_capacity(grants: usize) -> Self {
        Self {
            takings: Vec::with_capacity(grants),
            credits: Vec::new(),
        }
    }

    /// Records a grant, at the tick at which the limiter counted it.
    pub fn granted(&mut self, granted: &Granted) -> Entry<'_> {
        self.grant(granted.at(), granted.n())
    }

    /// Records `n` permits that were granted at this tick, for limiters that have no
    /// [`Granted`].
    pub fn grant(&mut self, tick: Tick, n: u64) -> Entry<'_> {
        self.take(tick, n, false)
    }

    /// Records a charge.
    pub fn charged(&mut self, charged: &Charged) -> Entry<'_> {
        self.take(charged.at(), charged.n(), true)
    }

    /// Records that `n` permits came back at this tick: what `undo` or `refund` returned. Not
    /// before the tick at which they were counted ([`Granted::at`]), if that is later than the
    /// caller's own.
    pub fn gave_back(&mut self, tick: Tick, n: u64) -> Entry<'_> {
        self.credit(tick, n, false)
    }

    /// Records a reset at this tick.
    pub fn reset(&mut self, tick: Tick) -> Entry<'_> {
        self.credit(tick, 1, true)
    }

    /// How many events were recorded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.takings.len() + self.credits.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn take(&mut self, tick: Tick, n: u64, is_charge: bool) -> Entry<'_> {
        if n == 0 {
            return Entry { took: None };
        }
        let took = Span::at(tick);
        self.takings.push(Taking {
            tick,
            n,
            is_charge,
            took,
        });
        Entry {
            took: self.takings.last_mut().map(|taking| &mut taking.took),
        }
    }

    fn credit(&mut self, tick: Tick, n: u64, is_reset: bool) -> Entry<'_> {
        if n == 0 {
            return Entry { took: None };
        }
        let took = Span::at(tick);
        self.credits.push(Credit { n, is_reset, took });
        Entry {
            took: self.credits.last_mut().map(|credit| &mut credit.took),
        }
    }
}

/// What was just recorded. Nothing, if it was 0 permits.
#[derive(Debug)]
pub struct Entry<'l> {
    took: Option<&'l mut Span>,
}

impl Entry<'_> {
    /// Says when the verb began and ended, by one clock that all threads share.
    ///
    /// ```
    /// use tollgate::audit::Log;
    /// use tollgate::Tick;
    ///
    /// let mut log = Log::new();
    /// log.gave_back(Tick::from_nanos(5), 2)
    ///     .during(Tick::from_nanos(4), Tick::from_nanos(90));
    /// ```
    pub fn during(self, begun: Tick, done: Tick) {
        if let Some(took) = self.took {
            *took = Span {
                begun,
                done: done.max(begun),
            };
        }
    }
}
