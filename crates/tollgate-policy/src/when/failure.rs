//! Why a request does not fulfill conditions.

use std::fmt;

use crate::facts::{FactValues, Facts, Kind};

use super::condition::{Condition, Test, When};
use super::reading::Reading;

/// The longest value that is shown, in characters.
const SHOWN: usize = 80;

/// The first condition that a request does not fulfill.
///
/// ```
/// use tollgate_policy::FactName;
/// use tollgate_policy::when::{Condition, Pattern, Test, When};
///
/// let method = FactName::new("method");
/// let test = Test::OneOf(vec![Pattern::parse(&method, "POST").unwrap()]);
/// let when = When { all: vec![Condition { fact: method, test }], ..When::default() };
/// let failure = when.first_failure(&[("method", "GET")]).unwrap();
/// assert_eq!(failure.to_string(), "method is GET, not POST");
/// assert!(when.first_failure(&[("method", "POST")]).is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure<'a> {
    /// A condition does not hold.
    Condition {
        /// The condition.
        condition: &'a Condition,
        /// The values that the request has.
        found: FactValues<'a>,
    },
    /// None of these alternatives holds.
    Any(&'a [When]),
    /// These conditions hold, but must not.
    Not(&'a When),
}

impl When {
    /// Returns the first condition that a request does not fulfill, or `None` if it fulfills all.
    #[must_use]
    pub fn first_failure<'a>(&'a self, facts: &'a (impl Facts + ?Sized)) -> Option<Failure<'a>> {
        if let Some(condition) = self.all.iter().find(|condition| !condition.holds(facts)) {
            let found = facts.values(&condition.fact);
            return Some(Failure::Condition { condition, found });
        }
        if !self.any.is_empty() && !self.any.iter().any(|when| when.holds(facts)) {
            return Some(Failure::Any(&self.any));
        }
        let not = self.not.as_deref();
        not.filter(|when| when.holds_by(facts, Reading::EACH))
            .map(Failure::Not)
    }
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (condition, found) = match self {
            Self::Condition { condition, found } => (condition, found),
            Self::Any(alternatives) => {
                let count = alternatives.len();
                return write!(f, "`any`: none of the {count} alternatives holds");
            }
            Self::Not(when) => return write!(f, "`not`: {when} holds"),
        };
        write!(f, "{} is {}", condition.fact, ShownValues(found))?;
        match &condition.test {
            Test::Present => Ok(()),
            Test::Absent => f.write_str(", not absent"),
            Test::OneOf(patterns) => {
                for (index, pattern) in patterns.iter().enumerate() {
                    let before = if index == 0 { ", not" } else { " or" };
                    write!(f, "{before} {pattern}")?;
                }
                Ok(())
            }
        }
    }
}

/// The most values that are shown.
const SHOWN_VALUES: usize = 4;

/// The values of a fact, as messages show them.
pub(crate) struct ShownValues<'v>(pub(crate) &'v FactValues<'v>);

impl fmt::Display for ShownValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = match &self.0.0 {
            Kind::None => return f.write_str("absent"),
            Kind::One(_) => false,
            Kind::Several(several) => several.more || several.known.len() > SHOWN_VALUES,
        };
        for (index, value) in self.0.iter().take(SHOWN_VALUES).enumerate() {
            let before = if index == 0 { "" } else { " and " };
            write!(f, "{before}{}", Shown(&value.as_text()))?;
        }
        match (more, self.0.known().is_empty()) {
            (true, true) => f.write_str("one of more values than are read"),
            (true, false) => f.write_str(" and others"),
            (false, _) => Ok(()),
        }
    }
}

/// A value of a request, which can be anything: it is cut, and has no control characters.
pub(crate) struct Shown<'v>(pub(crate) &'v str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.char_indices().nth(SHOWN).map(|(end, _)| end);
        let shown = end.and_then(|end| self.0.get(..end)).unwrap_or(self.0);
        if !shown.is_empty() && shown.bytes().all(|byte| byte.is_ascii_graphic()) {
            f.write_str(shown)?;
        } else {
            write!(f, "{shown:?}")?;
        }
        f.write_str(if end.is_some() { "…" } else { "" })
    }
}
