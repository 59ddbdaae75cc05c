//! Every order of a few verbs on a small limit. After each verb the permits that callers use are
//! checked, each at the tick at which it is used.

use std::mem;

use tollgate::algorithm::Reserve;
use tollgate_audit::{Audit, Bounded, Log};

use crate::support::*;

/// The number of additional verbs in release builds. Five verbs were enough to find all wrong rules
/// for returns.
pub(super) const MORE: u32 = if cfg!(debug_assertions) { 0 } else { 1 };

/// A grant that a caller holds.
pub(super) struct Held {
    granted: Granted,
    is_reserved: bool,
    /// The permits that are still used, and when.
    pub(super) goes: u64,
    pub(super) used_at: Tick,
    is_live: bool,
}

/// How grants are given back.
pub(super) enum Back<A> {
    /// Not at all.
    Never,
    /// Any part of a grant is cancelled.
    Cancel,
    /// The whole of a grant that is no reservation, by this method of the algorithm.
    Whole(fn(&A, u64, Tick, &Granted) -> (u64, u64)),
}

/// A verb of a history, for messages.
#[derive(Debug)]
#[allow(dead_code, reason = "only printed")]
pub(super) enum Done {
    Reserve { n: u64, used_at: Tick },
    Take { n: u64, used_at: Tick },
    GiveBack { which: usize, n: u64, back: u64 },
    GoTo(Tick),
}

/// The histories of one limit.
pub(super) struct Search<A> {
    pub(super) algorithm: A,
    /// The largest request.
    pub(super) largest: u64,
    /// Whether permits are also taken without a reservation.
    pub(super) takes: bool,
    /// Whether callers also use older ticks. Then permits count where the limiter says.
    pub(super) is_skewed: bool,
    pub(super) gives_back: Back<A>,
    /// Whether a cancellation never moves the word on.
    pub(super) is_line: bool,
    /// By how many nanoseconds the time advances.
    pub(super) apart: [u64; 2],
    pub(super) held: Vec<Held>,
    /// Permits that came back after they were used, with the tick.
    pub(super) came_back: Vec<(Tick, u64)>,
    pub(super) done: Vec<Done>,
    /// The numbers of requests that no reservation was granted to, of reservations that wait, of
    /// those that were cancelled while they waited, and of permits that came back.
    pub(super) denied: u64,
    pub(super) waited: u64,
    pub(super) cancelled_in_line: u64,
    pub(super) returned: u64,
    /// The first history that exceeds the bound.
    pub(super) excess: Option<String>,
}

/// The state between two verbs: the word, the tick, and how many verbs are left.
type Between = (u64, Tick, u32);

impl<A: Reserve + Debug> Search<A> {
    pub(super) fn new(algorithm: A) -> Self {
        Self {
            largest: algorithm.available(0, tick(0)),
            algorithm,
            takes: true,
            is_skewed: false,
            gives_back: Back::Cancel,
            is_line: false,
            apart: [1, 3],
            held: Vec::new(),
            came_back: Vec::new(),
            done: Vec::new(),
            denied: 0,
            waited: 0,
            cancelled_in_line: 0,
            returned: 0,
            excess: None,
        }
    }

    /// Runs all histories of this many verbs. `check` checks each state.
    pub(super) fn run(mut self, steps: u32, check: impl Fn(&Self) -> Result<(), String>) -> Self {
        self.go_on((0, tick(0), steps), &check);
        self
    }

    fn go_on(&mut self, (word, now, steps): Between, check: &dyn Fn(&Self) -> Result<(), String>) {
        if let Err(excess) = check(self) {
            let (of, done) = (&self.algorithm, &self.done);
            self.excess
                .get_or_insert(format!("{excess}: {of:?} after {done:?}"));
        }
        let Some(steps) = steps.checked_sub(1) else {
            return;
        };
        for n in 1..=self.largest {
            let reserved = self.algorithm.reserve(word, now, n, Tick::MAX);
            self.denied += u64::from(reserved.is_err());
            if let Ok((next, granted)) = reserved {
                let used_at = granted.due();
                assert!(used_at >= now);
                // A reservation that is rolled back would be a grant if it were due at once.
                if used_at > now || !matches!(self.gives_back, Back::Whole(_)) {
                    self.waited += u64::from(used_at > now);
                    self.done.push(Done::Reserve { n, used_at });
                    self.hold(granted, used_at, true);
                    self.go_on((next, now, steps), check);
                    self.release();
                }
            }
            let taken = self.takes.then(|| self.algorithm.step(word, now, n));
            if let Some(Ok((next, granted))) = taken {
                // The caller goes now, even if the permits are counted later.
                let used_at = if self.is_skewed { granted.at() } else { now };
                self.done.push(Done::Take { n, used_at });
                self.hold(granted, used_at, false);
                self.go_on((next, now, steps), check);
                self.release();
            }
        }
        for which in 0..self.held.len() {
            match self.gives_back {
                Back::Never => {}
                Back::Cancel => {
                    for n in 1..=self.held[which].granted.n() {
                        if self.held[which].is_live {
                            self.cancel(which, n, (word, now, steps), check);
                        }
                    }
                }
                Back::Whole(by) => {
                    let held = &mut self.held[which];
                    if held.is_live && !held.is_reserved {
                        let (next, back) = by(&self.algorithm, word, now, &held.granted);
                        let n = held.granted.n();
                        assert!(back <= n);
                        (held.is_live, held.goes) = (false, 0);
                        self.returned += back;
                        self.done.push(Done::GiveBack { which, n, back });
                        self.go_on((next, now, steps), check);
                        self.done.pop();
                        let held = &mut self.held[which];
                        (held.is_live, held.goes) = (true, n);
                    }
                }
            }
        }
        let earlier = (self.is_skewed && now > tick(2)).then(|| tick(now.as_nanos() - 2));
        let later = self
            .apart
            .map(|by| now.saturating_add(Duration::from_nanos(by)));
        for then in earlier.into_iter().chain(later) {
            self.done.push(Done::GoTo(then));
            self.go_on((word, then, steps), check);
            self.done.pop();
        }
    }

    fn hold(&mut self, granted: Granted, used_at: Tick, is_reserved: bool) {
        self.held.push(Held {
            goes: granted.n(),
            granted,
            is_reserved,
            used_at,
            is_live: true,
        });
    }

    fn release(&mut self) {
        self.held.pop();
        self.done.pop();
    }

    fn cancel(
        &mut self,
        which: usize,
        n: u64,
        (word, now, steps): Between,
        check: &dyn Fn(&Self) -> Result<(), String>,
    ) {
        let held = &mut self.held[which];
        let (before, goes, used_at) = (held.granted.info(), held.goes, held.used_at);
        let (next, kept, back) = self.algorithm.cancel(word, now, &held.granted, n);
        assert!(back <= n && kept.n() == before.n() - n && kept.due() <= before.due());
        assert!(next <= word || !self.is_line);
        self.done.push(Done::GiveBack { which, n, back });
        let credits = self.came_back.len();
        self.returned += back;
        held.is_live = false;
        let mut whole = None;
        if used_at > now {
            self.cancelled_in_line += 1;
            held.goes -= n;
            held.used_at = kept.due();
            assert!(kept.due() >= now);
            whole = Some(mem::replace(&mut held.granted, kept));
        } else {
            self.came_back.push((now, back));
        }
        self.go_on((next, now, steps), check);
        self.came_back.truncate(credits);
        let held = &mut self.held[which];
        (held.is_live, held.goes, held.used_at) = (true, goes, used_at);
        if let Some(whole) = whole {
            held.granted = whole;
        }
        self.done.pop();
    }
}

impl<A: Bounded> Search<A> {
    /// Checks the permits that are used, less those that came back, against the algorithm's bound.
    pub(super) fn keeps_the_bound(&self) -> Result<(), String> {
        let mut log = Log::new();
        for held in &self.held {
            log.grant(held.used_at, held.goes);
        }
        for (tick, n) in &self.came_back {
            log.gave_back(*tick, *n);
        }
        let history: Audit = [log].into_iter().collect();
        let checked = history.check(&self.algorithm.bound());
        checked.map(drop).map_err(|excess| excess.to_string())
    }
}
