//! golang.org/x/time/rate: a token bucket with reservations, in nanoseconds.
//!
//! `allow_n` is `try_acquire_n`, `reserve_n` and `reserve_within` are `reserve_until`, and `cancel`
//! cancels the whole reservation. A new limit or burst is a new quota, and the word is carried over
//! to it. The level is compared as it was before the call. The wait of a refused call is "Inf"
//! there, like an infinite one.
//!
//! Their mistakes are in [`xtime_theirs`](super::xtime_theirs), which only the conditions of
//! classes use: for every call that differs, all recorded values must be the ones that it computes.

use tollgate::outcome::GrantInfo;
use tollgate_replay::TIE;
use tollgate_replay::prelude::*;

use super::Begun;
use super::classes::{CREDITED_TWICE, CUT, LESS, MIDDLE, MORE, PAST_ITS_TIME, ROUNDED, STALE};
use super::xtime_bucket::{Bucket, Decided};
use super::xtime_theirs::{Asked, Said, Theirs, limit, recorded};
use super::xtime_without::Without;

pub(super) fn begin(header: &Header) -> Begun {
    let (limit, burst) = (limit(&header.config)?, header.config.u64("burst")?);
    let theirs = Theirs::new(header.source.ends_with(" v0.3.0"), limit, burst);
    Ok(match Bucket::new(limit, burst) {
        Err(error) => Box::new(Without::new(theirs, error)),
        Ok(bucket) => Box::new(XTrace {
            bucket,
            theirs,
            last: None,
        }),
    })
}

const LEVELS: [&str; 2] = ["tokens", "tokens as time"];

struct XTrace {
    bucket: Bucket,
    theirs: Theirs,
    last: Option<Last>,
}

/// The position of a reservation in the word.
#[derive(Clone, Copy)]
struct Stands {
    n: u64,
    mark: u64,
}

/// What the classes need to know about the last call.
#[derive(Default)]
struct Last {
    asked: Option<Asked>,
    t: u64,
    /// The permits that the clock made in a nanosecond before it.
    per_ns: f64,
    /// Our word before it, our decision, and the position of a cancelled reservation.
    word: u64,
    decision: Option<Result<GrantInfo, Denied>>,
    held: Option<Stands>,
    is_stale: bool,
    /// The tick of their count, the time of their reservation, and the answer computed for them.
    counted_to: i128,
    to_act: Option<i128>,
    back: f64,
    said: Said,
}

impl Replay for XTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let t = op.args.u64("t")?;
        let (now, word, counted_to) = (Tick::from_nanos(t), self.bucket.word(), self.theirs.last);
        let mut last = Last {
            asked: Asked::of(op)?,
            t,
            per_ns: self.bucket.per_ns(),
            word,
            counted_to,
            ..Last::default()
        };
        let theirs = recorded(op)?;
        let comparison = match last.asked {
            Some(asked) => {
                last.said = asked.said_by(&mut self.theirs, t);
                let Decided {
                    decision,
                    before: ours,
                } = match asked.max_ns {
                    None => self.bucket.allow(now, asked.n),
                    Some(max) => {
                        let latest = Tick::from_nanos(t.saturating_add(max));
                        self.bucket.reserve(now, asked.n, latest)
                    }
                };
                let said = decision.as_ref().map(|granted| granted.info());
                let said = said.map_err(|denied| *denied);
                if let Some(id) = asked.id {
                    self.bucket.keep(id, decision.ok());
                }
                last.decision = Some(said);
                let delay = said.ok().map(|granted| in_nanos(granted.delay()));
                let comparison = Comparison::decision(theirs.ok, said.is_ok());
                let comparison = comparison.and("delay_ns", theirs.delay_ns(), delay);
                self.and_levels(comparison, before(theirs.tokens, theirs.ok, asked.n), ours)
            }
            None => {
                self.other(op, now, &mut last)?;
                last.said.tokens = self.theirs.tokens_at(t.into());
                let ours = self.bucket.tokens(now);
                self.and_levels(Comparison::without_decision(), theirs.tokens, ours)
            }
        };
        self.last = Some(last);
        Ok(comparison)
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let last = self.last.as_ref()?;
        if !last.said.is(&recorded(op).ok()?) {
            return None;
        }
        let (theirs, ours) = comparison.levels("tokens")?;
        let (lack, per_ns) = (theirs - ours, self.bucket.per_ns());
        let back_ns = last.counted_to - i128::from(last.t);
        let rounded = self.is_rounding(op, last, lack);
        let same = rounded || LEVELS.iter().all(|level| comparison.agrees_on(level));
        if op.name == "cancel" && !rounded && (back_ns <= 0 || last.is_late() && lack < 0.0) {
            return self.cancelled(last, lack);
        }
        let went_back = back_ns > 0 && lack > 0.0 && lack <= (back_ns + 1) as f64 * per_ns + TIE;
        match field {
            "tokens" | "tokens as time" if rounded => Some(&ROUNDED),
            "tokens" | "tokens as time" => went_back.then_some(&CREDITED_TWICE),
            _ if same => {
                // The sum of the truncation, the difference of the levels, and the rounding of a
                // decision.
                let most = 1 + if rounded {
                    1 + (lack / per_ns).ceil().max(0.0) as i128
                } else {
                    0
                };
                (1..=most).contains(&last.late()?).then_some(&CUT)
            }
            _ => {
                (went_back && (1..=back_ns + 1).contains(&last.late()?)).then_some(&CREDITED_TWICE)
            }
        }
    }

    /// Adopts their state if the levels after the call differ by more than rounding, or if we
    /// refused what they admitted.
    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let Some(last) = self.last.take() else {
            return Ok(false);
        };
        let (now, tokens) = (Tick::from_nanos(last.t), op.result.f64("tokens")?);
        if op.name.starts_with("set_") {
            self.bucket.look(now, tokens);
        }
        let refused = last.decision.is_some_and(|decision| decision.is_err());
        let moved = self.differs(now, tokens) || last.said.ok && refused;
        if !moved && !last.is_late() {
            return Ok(false);
        }
        let went_back = last.counted_to > i128::from(last.t);
        if op.name == "cancel" {
            self.bucket.restore(last.word);
        }
        if last.is_late() || went_back && self.theirs.last != i128::from(last.t) {
            // Theirs returned nothing for it, or has forgotten its time.
            return Ok(last.is_late());
        }
        if let Some(asked) = last.asked {
            if went_back {
                self.bucket.restore(last.word);
                let before = before(tokens, last.said.ok, asked.n);
                self.bucket.hold(now, before, 0);
            }
            if last.said.ok && (refused || went_back) {
                let decided = self.bucket.reserve(now, asked.n, Tick::MAX);
                if let Some(id) = asked.id {
                    self.bucket.keep(id, decided.decision.ok());
                }
            }
        }
        if self.differs(now, tokens) {
            // The reservations above the one that was returned, or above the one that was just
            // made.
            let above = match (last.asked, last.held) {
                (None, Some(held)) if !last.is_stale => held.mark,
                (None, _) => 0,
                (Some(_), _) => last.word,
            };
            self.bucket.hold(now, tokens, above);
        }
        Ok(true)
    }
}

impl XTrace {
    /// Returns whether our token count differs by more than our rounding.
    fn differs(&self, now: Tick, tokens: f64) -> bool {
        let near = if self.bucket.rounds() {
            self.bucket.per_ns()
        } else {
            self.bucket.near()
        };
        (tokens - self.bucket.tokens(now)).abs() > near
    }

    /// Handles the calls that ask for no tokens.
    fn other(&mut self, op: &Op, now: Tick, last: &mut Last) -> Result<(), Malformed> {
        let t = i128::from(last.t);
        match op.name.as_str() {
            "tokens_at" => return Ok(()),
            "cancel" => {
                let id = op.args.u64("id")?;
                let held = self.bucket.held(id);
                last.held = held.map(|held| Stands {
                    n: held.granted.n(),
                    mark: held.granted.mark(),
                });
                last.is_stale = held.is_some_and(|held| held.is_stale);
                last.to_act = self.theirs.to_act(id);
                self.bucket.cancel(now, id);
                last.back = self.theirs.cancel(t, id);
                return Ok(());
            }
            "set_limit" => self.theirs.set_limit(t, limit(&op.args)?),
            "set_burst" => self.theirs.set_burst(t, op.args.u64("burst")?),
            _ => return Err(op.unknown()),
        }
        let (limit, burst) = (self.theirs.limit, self.theirs.burst);
        let set = self.bucket.set(now, limit, burst);
        set.map_err(|error| Malformed(format!("no bucket of {limit}/s and {burst}: {error}")))
    }

    fn and_levels(&self, comparison: Comparison, theirs: f64, ours: f64) -> Comparison {
        let (as_time, [level, time]) = (|tokens| self.bucket.as_time(tokens), LEVELS);
        let comparison = comparison.and(level, theirs, ours);
        comparison.and(time, as_time(theirs), as_time(ours))
    }

    /// Returns whether their surplus is within our rounding.
    fn is_rounding(&self, op: &Op, last: &Last, lack: f64) -> bool {
        let (per_ns, near) = (self.bucket.per_ns(), self.bucket.near());
        if op.name.starts_with("set_") {
            return (0.0..=per_ns.max(last.per_ns) + near).contains(&lack);
        }
        self.bucket.rounds() && (-per_ns / 4.0 - near..=per_ns + near).contains(&lack)
    }

    /// Returns how much our level may be above the exact one: less than a unit.
    fn unit(&self) -> f64 {
        match self.bucket.rounds() {
            true => self.bucket.per_ns() / 4.0 + TIE,
            false => TIE,
        }
    }

    /// Returns the class of a cancelled reservation, from their surplus over ours.
    fn cancelled(&self, last: &Last, lack: f64) -> Option<&'static Class> {
        let held = last.held?;
        let n = held.n as f64;
        let waits = self.bucket.tokens_of(last.word, Tick::from_nanos(last.t)) < 0.0;
        let is_last = held.mark == last.word;
        if last.is_late() {
            return (lack < 0.0 && !waits && -lack <= n + self.unit()).then_some(&PAST_ITS_TIME);
        }
        if last.is_stale {
            return (lack > 0.0).then_some(&STALE);
        }
        match lack > 0.0 {
            true if last.back > n => Some(&MORE),
            true => (waits && !is_last).then_some(&MIDDLE),
            false => ((is_last || !waits) && last.back < n).then_some(&LESS),
        }
    }
}

impl Last {
    /// Returns whether the cancelled reservation was already due.
    fn is_late(&self) -> bool {
        self.to_act
            .is_some_and(|to_act| to_act < i128::from(self.t))
    }

    /// Returns by how many nanoseconds ours admits the call later.
    fn late(&self) -> Option<i128> {
        let ours = match self.decision? {
            Ok(granted) => i128::from(in_nanos(granted.delay())),
            Err(denied) => {
                let max = self.asked?.max_ns.unwrap_or(0);
                i128::from(in_nanos(denied.retry_after()?)) + i128::from(max)
            }
        };
        Some(ours - self.said.delay?)
    }
}
