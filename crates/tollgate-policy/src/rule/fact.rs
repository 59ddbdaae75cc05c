//! A fact that a rule reads: of the request, or a part of its path.

use std::borrow::Cow;

use crate::facts::{FactKind, FactName, FactValue, FactValues, Facts, Kind};
use crate::file::{Applies, Rule};
use crate::when::When;

/// A fact that a rule reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleFact {
    pub(crate) name: FactName,
    /// The conditions whose path captures it, and the name of the path.
    captured_by: Option<(When, FactName)>,
}

impl RuleFact {
    pub(crate) fn of(rule: &Rule, name: &str) -> Self {
        let name = FactName::new(name);
        let captured_by = match (name.kind(), &rule.when.value) {
            (FactKind::PathPart(_), Applies::When(when)) => {
                Some((when.clone(), FactName::new("path")))
            }
            _ => None,
        };
        Self { name, captured_by }
    }

    /// Returns the values for a request.
    #[inline]
    pub(crate) fn values<'f>(&self, facts: &'f (impl Facts + ?Sized)) -> FactValues<'f> {
        let (Some((when, path)), FactKind::PathPart(name)) = (&self.captured_by, self.name.kind())
        else {
            return facts.values(&self.name);
        };
        part(when, name, facts.values(path))
    }
}

/// Returns what `{name}` stands for in these paths.
fn part<'f>(when: &When, name: &str, paths: FactValues<'f>) -> FactValues<'f> {
    match paths.0 {
        Kind::None => FactValues::NONE,
        Kind::One(FactValue::Text(Cow::Borrowed(path))) => {
            when.capture(path, name).map(FactValue::from).into()
        }
        Kind::One(path) => {
            let path = path.as_text();
            let part = when.capture(&path, name);
            part.map(|part| FactValue::from(part.to_owned())).into()
        }
        // Only a program's own `Facts` can have several paths.
        Kind::Several(_) => FactValues::NONE.and_more(),
    }
}

/// Returns whether a fact can have this value in a key. If not, it is missing.
pub(crate) fn can_be_key(fact: &FactName, value: &FactValue<'_>) -> bool {
    fact.kind() != FactKind::ClientIp || value.as_address().is_some()
}
