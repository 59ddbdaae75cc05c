//! Where in a policy a value is, as messages say it: `rule "login": ban.after`.

use std::fmt;

use crate::file::Rule;
use crate::problem::quoted;

/// A value's place: the way to it from the top of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'p> {
    parent: Option<&'p Place<'p>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Top,
    Field(&'p str),
    /// An element of a list. Elements count from 1, as lines do.
    Element(usize),
    /// A rule or an entry of a list: its kind, its name and its number from 1.
    Item(&'p str, Option<&'p str>, usize),
}

impl<'p> Place<'p> {
    pub(super) const TOP: Self = Self {
        parent: None,
        step: Step::Top,
    };

    pub(super) fn field(&'p self, name: &'p str) -> Self {
        self.then(Step::Field(name))
    }

    pub(super) fn element(&'p self, index: usize) -> Self {
        self.then(Step::Element(index.saturating_add(1)))
    }

    /// Returns the place of a rule or an entry, which needs no parent.
    pub(super) fn item(kind: &'p str, name: Option<&'p str>, index: usize) -> Self {
        Self {
            parent: None,
            step: Step::Item(kind, name, index.saturating_add(1)),
        }
    }

    /// Returns the place of a rule or a limit. Its name is empty if it is missing.
    pub(super) fn rule(rule: &'p Rule, index: usize) -> Self {
        let name = Some(rule.name.as_str()).filter(|name| !name.is_empty());
        Self::item(rule.kind(), name, index)
    }

    fn then(&'p self, step: Step<'p>) -> Self {
        Self {
            parent: Some(self),
            step,
        }
    }

    fn separator(&self) -> &'static str {
        match self.step {
            Step::Top => "",
            Step::Item(..) => ": ",
            Step::Field(_) | Step::Element(_) => ".",
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
        }
        match self.step {
            Step::Top => Ok(()),
            Step::Field(name) => {
                f.write_str(self.parent.map_or("", Place::separator))?;
                // A name from the file can be any text.
                match name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "-_:".contains(c))
                {
                    true if name.len() <= 60 && !name.is_empty() => f.write_str(name),
                    _ => f.write_str(&quoted(name)),
                }
            }
            Step::Element(number) => write!(f, "[{number}]"),
            Step::Item(kind, Some(name), _) => write!(f, "{kind} {}", quoted(name)),
            Step::Item(kind, None, number) => write!(f, "{kind} {number}"),
        }
    }
}
