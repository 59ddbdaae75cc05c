//! Conditions, and what they mean.

use std::collections::BTreeSet;

use crate::facts::{FactName, Facts};

use super::input::{Input, Inputs};
use super::pattern::Pattern;
use super::reading::Reading;

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
    /// Returns whether a request fulfills the conditions, as rules and the list `deny` read them.
    /// If a fact has several values, one that fulfills a condition is enough. A condition within
    /// `not` leaves a request out only if each value fulfills it.
    ///
    /// ```
    /// use tollgate_policy::FactName;
    /// use tollgate_policy::when::{Condition, Pattern, Test, When};
    ///
    /// let user = FactName::new("user");
    /// let test = Test::OneOf(vec![Pattern::parse(&user, "ann").unwrap()]);
    /// let when = When { all: vec![Condition { fact: user, test }], ..When::default() };
    /// let both = [("user", "ann"), ("user", "bob")];
    /// assert!(when.holds(&both));
    /// assert!(!when.holds_for_each(&both));
    /// ```
    #[must_use]
    pub fn holds(&self, facts: &(impl Facts + ?Sized)) -> bool {
        self.holds_by(facts, Reading::ANY)
    }

    /// Returns whether a request fulfills the conditions, as the list `allow` reads them. If a fact
    /// has several values, each of them has to fulfill a condition, and none of them a condition
    /// within `not`.
    #[must_use]
    pub fn holds_for_each(&self, facts: &(impl Facts + ?Sized)) -> bool {
        self.holds_by(facts, Reading::EACH)
    }

    pub(crate) fn holds_by(&self, facts: &(impl Facts + ?Sized), reading: Reading) -> bool {
        self.fulfilled(reading, &|it, reading| it.holds_by(facts, reading))
    }

    /// Returns whether the conditions hold if `holds` says which single conditions hold.
    pub(super) fn fulfilled(
        &self,
        reading: Reading,
        holds: &impl Fn(&Condition, Reading) -> bool,
    ) -> bool {
        let mut any = self.any.iter();
        let mut not = self.not.iter();
        self.all.iter().all(|it| holds(it, reading))
            && (self.any.is_empty() || any.any(|when| when.fulfilled(reading, holds)))
            && !not.any(|when| when.fulfilled(reading.negated(), holds))
    }

    /// Adds the facts that the conditions read.
    pub(crate) fn add_facts(&self, names: &mut BTreeSet<FactName>) {
        names.extend(self.all.iter().map(|condition| condition.fact.clone()));
        for when in self.any.iter().chain(self.not.as_deref()) {
            when.add_facts(names);
        }
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
    /// Whether a request fulfills the condition. Of several values, one has to.
    #[must_use]
    pub fn holds(&self, facts: &(impl Facts + ?Sized)) -> bool {
        self.holds_by(facts, Reading::ANY)
    }

    fn holds_by(&self, facts: &(impl Facts + ?Sized), reading: Reading) -> bool {
        let inputs = Inputs::read(facts, &self.fact);
        self.test.accepts(&self.fact, &inputs, reading)
    }
}

impl Test {
    /// The patterns that the value is compared with.
    pub(super) fn patterns(&self) -> &[Pattern] {
        match self {
            Self::OneOf(patterns) => patterns,
            _ => &[],
        }
    }

    #[inline]
    pub(super) fn accepts(&self, fact: &FactName, inputs: &Inputs<'_>, reading: Reading) -> bool {
        let (known, more) = match inputs {
            Inputs::None => return matches!(self, Self::Absent),
            Inputs::One(input) => return self.accepts_one(fact, input),
            Inputs::Several { known, more } => (known, *more && !reading.only_known),
        };
        let accepts = |input| self.accepts_one(fact, input);
        match (reading.each, known.is_empty()) {
            // There may be a value, or none.
            (each, true) if more => !each,
            (_, true) => matches!(self, Self::Absent),
            (true, false) if matches!(self, Self::Present) => true,
            (true, false) => !more && known.iter().all(accepts),
            // It is there, whatever else is.
            (false, false) if matches!(self, Self::Absent) => false,
            (false, false) => more || known.iter().any(accepts),
        }
    }

    #[inline]
    fn accepts_one(&self, fact: &FactName, input: &Input<'_>) -> bool {
        match self {
            Self::Present => true,
            Self::Absent => false,
            Self::OneOf(patterns) => patterns.iter().any(|pattern| pattern.accepts(fact, input)),
        }
    }
}
