//! What the two token buckets on redis have in common: the same call in whole seconds, the same
//! results, and the same answer to a clock that goes back.

use std::ops::RangeInclusive;

use tollgate_replay::{
    Class, Comparison, Direction, Header, LevelGate, Malformed, Op, TIE as NEAR, before, is_tie,
};

/// They keep the level when time goes back, and the earlier time with it, so that the same
/// seconds are credited a second time. We count at the latest time seen, and are short by at most
/// what went back. The class is found at the call with which time goes back: theirs must be the
/// level from before, and ours below it by no more than that. The recorded level is then taken
/// over, so that the second credit is nothing that differs any more.
static WENT_BACK: Class = Class {
    name: "time went back: the seconds since are credited twice",
    directions: &[Direction::TheyAdmitMore, Direction::OtherValue],
};

/// The level was within a millionth of a permit of what was asked for (or of the whole permits
/// that are reported), and both agree on the level. We decide exactly.
pub(super) static TIE: Class = Class {
    name: "doubles at a tie",
    directions: &[
        Direction::TheyAdmitMore,
        Direction::TheyAdmitLess,
        Direction::OtherValue,
    ],
};

/// The state that a call printed.
#[derive(Clone, Copy)]
struct State {
    t: u64,
    level: f64,
}

pub(super) struct RedisBucket {
    pub(super) bucket: LevelGate,
    may_go_back: bool,
    /// What the call before the last one printed, and the last.
    before: Option<State>,
    last: Option<State>,
}

impl RedisBucket {
    pub(super) fn new(header: &Header) -> Result<Self, Malformed> {
        Ok(Self {
            bucket: LevelGate::new(&header.config)?,
            may_go_back: header.variant.as_deref() == Some("backwards"),
            before: None,
            last: None,
        })
    }

    pub(super) fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        let (ok, level) = (op.result.flag("ok")?, op.result.f64("stored")?);
        let ours = self.bucket.ask(n, nanos(t));
        self.before = self.last.replace(State { t, level });
        Ok(Comparison::decision(op, ok, ours.answer.ok())
            .and(
                "tokens_left",
                op.result.u64("tokens_left")?,
                ours.answer.remaining,
            )
            .and("stored before", before(level, ok, n), ours.before)
            .and("stored_t", op.result.u64("stored_t")?, t))
    }

    pub(super) fn class(
        &self,
        op: &Op,
        comparison: &Comparison,
        field: &str,
    ) -> Option<&'static Class> {
        let (n, t) = asked(op).ok()?;
        let now = self.last?;
        // Whatever they report must be what they store.
        let left = op.result.u64("tokens_left").ok()?;
        let fits = match field {
            "ok" | "stored before" => true,
            "tokens_left" => whole(now.level).contains(&left),
            _ => false,
        };
        if fits && self.may_go_back && self.went_back(t, comparison) {
            return Some(&WENT_BACK);
        }
        let tie = match field {
            "ok" => is_tie(before(now.level, op.result.flag("ok").ok()?, n), n),
            // It follows the decision, and is cut off to whole permits.
            "tokens_left" => is_tie(now.level, now.level.round() as u64),
            _ => false,
        };
        (fits && tie && comparison.agrees_on("stored before")).then_some(&TIE)
    }

    /// Whether the levels are what they must be after time went back.
    fn went_back(&self, t: u64, comparison: &Comparison) -> bool {
        let Some(last) = self.before.filter(|last| t < last.t) else {
            return false;
        };
        let short = (last.t - t) as f64 * self.bucket.rate() + NEAR;
        comparison
            .levels("stored before")
            .is_some_and(|(theirs, ours)| {
                theirs == last.level && ours < theirs && ours >= theirs - short
            })
    }

    pub(super) fn take_over(&self) -> Result<bool, Malformed> {
        match self.last {
            Some(State { t, level }) => self.bucket.hold(level, nanos(t)).map(|()| true),
            None => Ok(false),
        }
    }
}

/// The whole permits that a level may be reported as: two numbers if it is near a tie.
pub(super) fn whole(level: f64) -> RangeInclusive<u64> {
    (level - NEAR) as u64..=(level + NEAR) as u64
}

/// The permits and the second.
pub(super) fn asked(op: &Op) -> Result<(u64, u64), Malformed> {
    if op.name == "acquire" {
        Ok((op.args.u64("n")?, op.args.u64("t")?))
    } else {
        Err(op.unknown())
    }
}

pub(super) fn nanos(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000)
}
