use tollgate::outcome::Charged;
use tollgate::{Granted, Tick};

/// Permits that were granted or charged at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taking {
    pub(crate) tick: Tick,
    pub(crate) n: u64,
    pub(crate) is_charge: bool,
    pub(crate) took: Span,
}

/// Permits that came back, or a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credit {
    pub(crate) n: u64,
    pub(crate) is_reset: bool,
    pub(crate) took: Span,
}

/// When an operation began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) begun: Tick,
    pub(crate) done: Tick,
}

impl Span {
    const fn at(tick: Tick) -> Self {
        Self {
            begun: tick,
            done: tick,
        }
    }
}

/// The events of one thread.
///
/// ```
/// use tollgate_audit::Log;
/// use tollgate::Tick;
///
/// let mut log = Log::new();
/// log.grant(Tick::from_nanos(5), 2);
/// log.gave_back(Tick::from_nanos(6), 1);
/// assert_eq!(log.len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    pub(crate) takings: Vec<Taking>,
    pub(crate) credits: Vec<Credit>,
}

impl Log {
    /// Makes an empty log.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            takings: Vec::new(),
            credits: Vec::new(),
        }
    }

    /// Makes an empty log with capacity for this many grants, so that recording them does not
    /// allocate.
    #[must_use]
    pub fn with_capacity(grants: usize) -> Self {
        Self {
            takings: Vec::with_capacity(grants),
            credits: Vec::new(),
        }
    }

    /// Records a grant at the tick at which the limiter counted it.
    pub fn granted(&mut self, granted: &Granted) -> Entry<'_> {
        self.grant(granted.at(), granted.n())
    }

    /// Records that `n` permits were granted at this tick, for limiters that return no [`Granted`].
    pub fn grant(&mut self, tick: Tick, n: u64) -> Entry<'_> {
        self.take(tick, n, false)
    }

    /// Records a charge.
    pub fn charged(&mut self, charged: &Charged) -> Entry<'_> {
        self.take(charged.at(), charged.n(), true)
    }

    /// Records that `n` permits came back at this tick: the number that `undo` or `refund`
    /// returned. The tick is the caller's own or, if later, the one at which the permits were
    /// counted ([`Granted::at`]).
    pub fn gave_back(&mut self, tick: Tick, n: u64) -> Entry<'_> {
        self.credit(tick, n, false)
    }

    /// Records a reset at this tick.
    pub fn reset(&mut self, tick: Tick) -> Entry<'_> {
        self.credit(tick, 1, true)
    }

    /// Returns how many events were recorded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.takings.len() + self.credits.len()
    }

    /// Returns whether no events were recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn take(&mut self, tick: Tick, n: u64, is_charge: bool) -> Entry<'_> {
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

/// The event that was just recorded, or none if it had 0 permits.
#[derive(Debug)]
pub struct Entry<'l> {
    took: Option<&'l mut Span>,
}

impl Entry<'_> {
    /// Records when the operation began and ended, by one clock that all threads share.
    ///
    /// ```
    /// use tollgate_audit::Log;
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
