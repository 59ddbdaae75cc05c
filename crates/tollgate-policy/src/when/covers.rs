//! Whether some conditions hold whenever others do.

use super::condition::{Condition, Test, When};
use super::pattern::Pattern;

impl When {
    /// Whether each request that fulfills `other` fulfills these conditions too. `true` is certain;
    /// `false` can also mean that it is not known.
    ///
    /// ```
    /// use tollgate_policy::FactName;
    /// use tollgate_policy::when::{Condition, Pattern, Test, When};
    ///
    /// let path = FactName::new("path");
    /// let [all, users] = ["/api/**", "/api/users/{user}"].map(|text| {
    ///     let test = Test::OneOf(vec![Pattern::parse(&path, text).unwrap()]);
    ///     When { all: vec![Condition { fact: path.clone(), test }], ..When::default() }
    /// });
    /// assert!(all.covers(&users));
    /// assert!(!users.covers(&all));
    /// ```
    #[must_use]
    pub fn covers(&self, other: &When) -> bool {
        let implied = |condition| other.implies(condition);
        let any = self.any.is_empty()
            || self.any.iter().any(|alternative| alternative.covers(other))
            || (!other.any.is_empty() && self.covers_each(&other.any));
        let not = self.not.as_ref().is_none_or(|not| other.excludes(not));
        self.all.iter().all(implied) && any && not
    }

    /// Whether no request fulfills these conditions. `true` is certain; `false` can also mean
    /// unknown.
    pub(crate) fn is_contradiction(&self) -> bool {
        let is_excluded = self.not.as_ref().is_some_and(|not| {
            let others = Self {
                all: self.all.clone(),
                any: self.any.clone(),
                not: None,
            };
            not.covers(&others)
        });
        let has_none = !self.any.is_empty() && self.any.iter().all(Self::is_contradiction);
        is_excluded || has_none
    }

    /// Whether no request fulfills both. `true` is certain; `false` can also mean unknown.
    pub(crate) fn is_disjoint(&self, other: &Self) -> bool {
        let no_alternative = |when: &Self, other: &Self| {
            !when.any.is_empty() && when.any.iter().all(|it| it.is_disjoint(other))
        };
        self.excludes(other)
            || other.excludes(self)
            || no_alternative(self, other)
            || no_alternative(other, self)
    }

    /// Whether each of these has an alternative that covers it.
    fn covers_each(&self, others: &[When]) -> bool {
        let covered = |other: &When| self.any.iter().any(|when| when.covers(other));
        others.iter().all(covered)
    }

    /// Whether a condition holds whenever these conditions do.
    fn implies(&self, condition: &Condition) -> bool {
        self.all.iter().any(|known| condition.covers(known))
            || (!self.any.is_empty() && self.any.iter().all(|when| when.implies(condition)))
    }

    /// Whether the conditions `never` can't hold when these do.
    fn excludes(&self, never: &When) -> bool {
        let covered = self.not.as_ref().is_some_and(|not| not.covers(never));
        let contradicts = |condition: &Condition| {
            let mut same = never
                .all
                .iter()
                .filter(|other| other.fact == condition.fact);
            same.any(|other| condition.test.contradicts(&other.test))
        };
        covered || self.all.iter().any(contradicts)
    }
}

impl Condition {
    fn covers(&self, other: &Condition) -> bool {
        let covered = |pattern: &Pattern, patterns: &[Pattern]| {
            patterns.iter().any(|it| it.covers(pattern, &self.fact))
        };
        self.fact == other.fact
            && match (&self.test, &other.test) {
                (Test::Present, Test::Present | Test::OneOf(_)) | (Test::Absent, Test::Absent) => {
                    true
                }
                (Test::OneOf(patterns), Test::Present) => patterns.iter().any(Pattern::accepts_all),
                (Test::OneOf(patterns), Test::OneOf(others)) => {
                    others.iter().all(|pattern| covered(pattern, patterns))
                }
                _ => false,
            }
    }
}

impl Test {
    /// Whether no value fulfills both tests.
    fn contradicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Present | Self::OneOf(_))
            | (Self::Present | Self::OneOf(_), Self::Absent) => true,
            (Self::OneOf(these), Self::OneOf(others)) => these
                .iter()
                .all(|this| others.iter().all(|other| this.is_disjoint(other))),
            _ => false,
        }
    }
}
