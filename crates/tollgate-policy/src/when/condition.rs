//! Conditions, and what they mean.

use crate::fact::{FactName, Facts};

use super::input::Input;
use super::pattern::Pattern;

/// Conditions of a request.
///
/// A request fulfills them if it fulfills all of `all`, at least one of `any` unless that is empty,
/// and not all of `not`.
///
/// ```
/// use tollgate_policy::FactName;
/// use tollgate_policy::when::{Condition, Pattern, Test, When};
///
/// let path = FactName::new("path");
/// let test = Test::OneOf(vec![Pattern::parse(&path, "/api/**").unwrap()]);
/// let when = When { all: vec![Condition { fact: path, test }], ..When::default() };
/// assert!(when.holds(&[("path", "/api/users")]));
/// assert!(!when.holds(&[("path", "/login")]));
/// assert_eq!(when.to_string(), r#"{ path = "/api/**" }"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct When {
    /// Conditions that must all hold.
    pub all: Vec<Condition>,
    /// Alternatives, one of which must hold unless there are none.
    pub any: Vec<When>,
    /// Conditions that must not all hold.
    pub not: Option<Box<When>>,
}

/// A condition of one fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The fact.
    pub fact: FactName,
    /// What its value must be.
    pub test: Test,
}

/// What the value of a fact must be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Test {
    /// There is a value.
    Present,
    /// There is no value.
    Absent,
    /// The value is one of these.
    OneOf(Vec<Pattern>),
}

impl When {
    /// Whether a request fulfills the conditions.
    #[must_use]
    pub fn holds(&self, facts: &(impl Facts + ?Sized)) -> bool {
        self.all.iter().all(|condition| condition.holds(facts))
            && (self.any.is_empty() || self.any.iter().any(|when| when.holds(facts)))
            && !self.not.as_ref().is_some_and(|when| when.holds(facts))
    }

    /// Returns what `{name}` stands for in the first path pattern that matches and has that name.
    ///
    /// ```
    /// use tollgate_policy::FactName;
    /// use tollgate_policy::when::{Condition, Pattern, Test, When};
    ///
    /// let path = FactName::new("path");
    /// let test = Test::OneOf(vec![Pattern::parse(&path, "/users/{user}").unwrap()]);
    /// let when = When { all: vec![Condition { fact: path, test }], ..When::default() };
    /// assert_eq!(when.capture("/users/alice", "user"), Some("alice"));
    /// ```
    #[must_use]
    pub fn capture<'p>(&self, path: &'p str, name: &str) -> Option<&'p str> {
        let capture = |pattern: &Pattern| match pattern {
            Pattern::Path(pattern) => pattern.capture(path, name),
            _ => None,
        };
        let patterns = self
            .all
            .iter()
            .flat_map(|condition| condition.test.patterns());
        let mut alternatives = self.any.iter();
        patterns
            .filter_map(capture)
            .next()
            .or_else(|| alternatives.find_map(|when| when.capture(path, name)))
    }
}

impl Condition {
    /// Whether a request fulfills the condition.
    #[must_use]
    pub fn holds(&self, facts: &(impl Facts + ?Sized)) -> bool {
        self.test
            .accepts(&self.fact, Input::read(facts, &self.fact).as_ref())
    }
}

impl Test {
    pub(super) fn accepts(&self, fact: &FactName, input: Option<&Input<'_>>) -> bool {
        match (self, input) {
            (Self::Present, input) => input.is_some(),
            (Self::Absent, input) => input.is_none(),
            (Self::OneOf(_), None) => false,
            (Self::OneOf(patterns), Some(input)) => {
                patterns.iter().any(|pattern| pattern.accepts(fact, input))
            }
        }
    }

    /// The patterns that the value is compared with.
    pub(super) fn patterns(&self) -> &[Pattern] {
        match self {
            Self::OneOf(patterns) => patterns,
            _ => &[],
        }
    }
}
