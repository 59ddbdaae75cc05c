//! What was recorded beside what we answered, and the classes of difference that are on purpose.

use std::fmt;

use super::format::Op;

/// Levels, in permits, that are nearer than this are one level: the recorded ones are doubles.
pub(crate) const TIE: f64 = 1e-6;

/// A difference on purpose.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) name: &'static str,
    /// The only directions in which it may show.
    pub(crate) directions: &'static [Direction],
}

/// In which direction the recorded limiter differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// They admitted what we refuse.
    TheyAdmitMore,
    /// They refused what we admit.
    TheyAdmitLess,
    /// The same decision, with another value beside it.
    OtherValue,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TheyAdmitMore => "they admit more",
            Self::TheyAdmitLess => "they admit less",
            Self::OtherValue => "other value",
        })
    }
}

/// One answer, in the recorded limiter's units.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    Flag(bool),
    Number(i128),
    /// Permits and parts of one.
    Level(f64),
    /// There is none: no wait because it was granted or never will be, no limiter.
    Nothing,
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Flag(a), Self::Flag(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::Level(a), Self::Level(b)) => (a - b).abs() <= TIE,
            (Self::Nothing, Self::Nothing) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Level(level) => write!(f, "{level:.9}"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl From<f64> for Value {
    fn from(level: f64) -> Self {
        Self::Level(level)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) field: &'static str,
    pub(crate) theirs: Value,
    pub(crate) ours: Value,
}

/// All that was recorded of one call, each beside our answer.
#[derive(Debug)]
pub(crate) struct Comparison {
    pairs: Vec<Pair>,
    /// The call, for whoever reads a failure.
    asked: String,
}

impl Comparison {
    /// Begins with the decision, which every call has. Ours is nothing where there is no limiter
    /// to decide.
    pub(crate) fn decision(op: &Op, theirs: bool, ours: impl Into<Value>) -> Self {
        let empty = Self {
            pairs: Vec::new(),
            asked: op.asked(),
        };
        empty.and("ok", theirs, ours)
    }

    #[must_use]
    pub(crate) fn and(
        mut self,
        field: &'static str,
        theirs: impl Into<Value>,
        ours: impl Into<Value>,
    ) -> Self {
        self.pairs.push(Pair {
            field,
            theirs: theirs.into(),
            ours: ours.into(),
        });
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(crate) fn differing(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.theirs != pair.ours)
    }

    /// Whether this field was compared and found equal.
    pub(crate) fn agrees_on(&self, field: &str) -> bool {
        self.pairs.iter().any(|pair| pair.field == field)
            && self.differing().all(|pair| pair.field != field)
    }

    /// Both values of a field that is a level.
    pub(crate) fn levels(&self, field: &str) -> Option<(f64, f64)> {
        let pair = self.pairs.iter().find(|pair| pair.field == field)?;
        match (pair.theirs, pair.ours) {
            (Value::Level(theirs), Value::Level(ours)) => Some((theirs, ours)),
            _ => None,
        }
    }

    pub(crate) fn direction(&self) -> Direction {
        match self.pairs.first().map(|ok| (ok.theirs, ok.ours)) {
            Some((Value::Flag(true), Value::Flag(false))) => Direction::TheyAdmitMore,
            Some((Value::Flag(false), Value::Flag(true))) => Direction::TheyAdmitLess,
            _ => Direction::OtherValue,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let theirs = self
            .pairs
            .iter()
            .map(|p| format!("{} {}", p.field, p.theirs));
        let ours = self.pairs.iter().map(|p| format!("{} {}", p.field, p.ours));
        write!(
            f,
            "{}: recorded [{}], answered [{}]",
            self.asked,
            theirs.collect::<Vec<_>>().join(", "),
            ours.collect::<Vec<_>>().join(", ")
        )
    }
}
