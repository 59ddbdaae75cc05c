//! Recorded values beside our answers, and the classes of accepted differences.

use std::fmt;

/// Levels, in permits, that differ by less than this count as equal: the recorded ones are doubles.
pub const TIE: f64 = 1e-6;

/// The name of the decision among the fields.
const DECISION: &str = "ok";

/// A class of accepted differences.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    /// The name in a report.
    pub name: &'static str,
    /// The directions in which the difference may occur.
    pub directions: &'static [Direction],
}

/// The direction in which the recorded limiter differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// They admitted a call that we refuse.
    TheyAdmitMore,
    /// They refused a call that we admit.
    TheyAdmitLess,
    /// The decision is the same, but another value differs.
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

/// One answer, in the units of the recorded limiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A whole number in any unit.
    Number(i128),
    /// Permits, with fractions.
    Level(f64),
    /// A word from the recorded limiter's vocabulary.
    Name(&'static str),
    /// No value: for example no wait because the call was granted or never will be, or no limiter.
    Nothing,
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

macro_rules! values {
    ($($from:ty => $kind:ident),*) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$kind(value.into())
            }
        }
    )*};
}

values!(bool => Flag, u64 => Number, i64 => Number, f64 => Level, &'static str => Name);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

/// One recorded value and ours.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) field: &'static str,
    theirs: Value,
    ours: Value,
}

impl Pair {
    fn is_equal(&self) -> bool {
        match (self.theirs, self.ours) {
            (Value::Level(theirs), Value::Level(ours)) => (theirs - ours).abs() <= TIE,
            (theirs, ours) => theirs == ours,
        }
    }
}

/// All recorded values of one call, each beside our answer.
#[derive(Debug, Default)]
pub struct Comparison {
    pairs: Vec<Pair>,
}

impl Comparison {
    /// Creates a comparison that begins with the decision. Ours is `Nothing` if there is no limiter
    /// to decide.
    #[must_use]
    pub fn decision(theirs: bool, ours: impl Into<Value>) -> Self {
        Self::default().and(DECISION, theirs, ours)
    }

    /// Creates a comparison for a call that decides nothing: it only takes, returns or reads.
    #[must_use]
    pub fn without_decision() -> Self {
        Self::default()
    }

    /// Adds a pair.
    #[must_use]
    pub fn and(
        mut self,
        field: &'static str,
        theirs: impl Into<Value>,
        ours: impl Into<Value>,
    ) -> Self {
        let (theirs, ours) = (theirs.into(), ours.into());
        self.pairs.push(Pair {
            field,
            theirs,
            ours,
        });
        self
    }

    /// Returns the number of pairs.
    pub(crate) fn count(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the pairs that differ.
    pub(crate) fn differing(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| !pair.is_equal())
    }

    fn pair(&self, field: &str) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.field == field)
    }

    /// Returns whether this field was compared and found equal.
    #[must_use]
    pub fn agrees_on(&self, field: &str) -> bool {
        self.pair(field).is_some_and(Pair::is_equal)
    }

    /// Returns both values of a field that is a level.
    #[must_use]
    pub fn levels(&self, field: &str) -> Option<(f64, f64)> {
        let pair = self.pair(field)?;
        match (pair.theirs, pair.ours) {
            (Value::Level(theirs), Value::Level(ours)) => Some((theirs, ours)),
            _ => None,
        }
    }

    /// Returns both values of a field that is a whole number.
    #[must_use]
    pub fn numbers(&self, field: &str) -> Option<(i128, i128)> {
        let pair = self.pair(field)?;
        match (pair.theirs, pair.ours) {
            (Value::Number(theirs), Value::Number(ours)) => Some((theirs, ours)),
            _ => None,
        }
    }

    /// Returns the direction in which the recorded limiter differs.
    pub(crate) fn direction(&self) -> Direction {
        let decision = self.pair(DECISION);
        match decision.map(|ok| (ok.theirs, ok.ours)) {
            Some((Value::Flag(true), Value::Flag(false))) => Direction::TheyAdmitMore,
            Some((Value::Flag(false), Value::Flag(true))) => Direction::TheyAdmitLess,
            _ => Direction::OtherValue,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |value: fn(&Pair) -> Value| {
            let values = self
                .pairs
                .iter()
                .map(|it| format!("{} {}", it.field, value(it)));
            values.collect::<Vec<_>>().join(", ")
        };
        let (theirs, ours) = (list(|pair| pair.theirs), list(|pair| pair.ours));
        write!(f, "recorded [{theirs}], answered [{ours}]")
    }
}
