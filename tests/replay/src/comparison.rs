//! What was recorded beside what we answered, and the classes of difference that are on purpose.

use std::fmt;

use crate::format::Op;

/// Levels, in permits, that are nearer than this are one level: the recorded ones are doubles.
pub const TIE: f64 = 1e-6;

/// What the decision is called among the fields.
const DECISION: &str = "ok";

/// A difference on purpose.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    /// What it is called in a report.
    pub name: &'static str,
    /// The only directions in which it may show.
    pub directions: &'static [Direction],
}

/// In which direction the recorded limiter differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
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
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A whole number of any unit.
    Number(i128),
    /// Permits and parts of one.
    Level(f64),
    /// A word of the recorded limiter's own.
    Name(&'static str),
    /// There is none: no wait because it was granted or never will be, no limiter.
    Nothing,
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Flag(a), Self::Flag(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::Level(a), Self::Level(b)) => (a - b).abs() <= TIE,
            (Self::Name(a), Self::Name(b)) => a == b,
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
            Self::Name(name) => f.write_str(name),
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

impl From<&'static str> for Value {
    fn from(name: &'static str) -> Self {
        Self::Name(name)
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

/// One value that was recorded, and ours.
#[derive(Debug)]
pub struct Pair {
    /// What it is called in a report.
    pub field: &'static str,
    /// What was recorded.
    pub theirs: Value,
    /// What we answered.
    pub ours: Value,
}

/// All that was recorded of one call, each value beside our answer.
#[derive(Debug)]
pub struct Comparison {
    pairs: Vec<Pair>,
    /// The call, for whoever reads a failure.
    asked: String,
}

impl Comparison {
    /// Begins with the decision. Ours is nothing where there is no limiter to decide.
    pub fn decision(op: &Op, theirs: bool, ours: impl Into<Value>) -> Self {
        Self::without_decision(op).and(DECISION, theirs, ours)
    }

    /// Of a call that decides nothing: it only takes, gives back or looks.
    #[must_use]
    pub fn without_decision(op: &Op) -> Self {
        Self {
            pairs: Vec::new(),
            asked: op.asked(),
        }
    }

    /// One pair more.
    #[must_use]
    pub fn and(
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

    /// How many pairs there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pairs.len()
    }

    /// The pairs that are not equal.
    pub fn differing(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.theirs != pair.ours)
    }

    /// Whether this field was compared and found equal.
    #[must_use]
    pub fn agrees_on(&self, field: &str) -> bool {
        self.pairs.iter().any(|pair| pair.field == field)
            && self.differing().all(|pair| pair.field != field)
    }

    /// Both values of a field that is a level.
    #[must_use]
    pub fn levels(&self, field: &str) -> Option<(f64, f64)> {
        match self.values(field)? {
            (Value::Level(theirs), Value::Level(ours)) => Some((theirs, ours)),
            _ => None,
        }
    }

    /// Both values of a field that is a whole number.
    #[must_use]
    pub fn numbers(&self, field: &str) -> Option<(i128, i128)> {
        match self.values(field)? {
            (Value::Number(theirs), Value::Number(ours)) => Some((theirs, ours)),
            _ => None,
        }
    }

    /// Both values of a field.
    #[must_use]
    pub fn values(&self, field: &str) -> Option<(Value, Value)> {
        let pair = self.pairs.iter().find(|pair| pair.field == field)?;
        Some((pair.theirs, pair.ours))
    }

    /// In which direction the recorded limiter differs, if it does.
    #[must_use]
    pub fn direction(&self) -> Direction {
        let decision = self.pairs.iter().find(|pair| pair.field == DECISION);
        match decision.map(|ok| (ok.theirs, ok.ours)) {
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
