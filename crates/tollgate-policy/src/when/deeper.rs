//! Finds where `*` at the end of a path is meant to match all below.

use super::condition::{Condition, Test, When};
use super::failure::Failure;
use super::path::PathPattern;
use super::pattern::Pattern;

impl When {
    /// Returns a hint if these conditions match no path of an exception, but would with `**` in
    /// place of `*` at the end: then the exception has no effect.
    pub(crate) fn hint_for(&self, exception: &Self) -> Option<String> {
        let (these, others) = (self.paths()?, exception.paths()?);
        let mut pairs = these
            .iter()
            .flat_map(|it| others.iter().map(move |other| (it, other)));
        let are_disjoint = pairs.all(|(it, other)| it.is_disjoint(other));
        let mut deeper = these.iter().filter_map(|path| path.deeper());
        let wanted = deeper.find(|path| others.iter().all(|other| path.covers(other)));
        wanted.filter(|_| are_disjoint).map(|path| hint(&path))
    }

    /// Returns the patterns of the path, one of which must match. `None` if they are not known.
    fn paths(&self) -> Option<Vec<&PathPattern>> {
        self.all.iter().find_map(|condition| match &condition.test {
            Test::OneOf(patterns) => patterns.iter().map(path).collect(),
            _ => None,
        })
    }
}

impl Failure<'_> {
    /// Returns a hint if the path would match with `**` in place of `*` at the end.
    pub(crate) fn hint(&self) -> Option<String> {
        let Self::Condition { condition, found } = self else {
            return None;
        };
        let Condition {
            test: Test::OneOf(patterns),
            ..
        } = condition
        else {
            return None;
        };
        let mut deeper = patterns.iter().filter_map(|it| path(it)?.deeper());
        let matches = |path: &PathPattern| found.iter().any(|it| path.matches(&it.as_text()));
        let wanted = deeper.find(matches);
        wanted.map(|path| hint(&path))
    }
}

fn path(pattern: &Pattern) -> Option<&PathPattern> {
    match pattern {
        Pattern::Path(path) => Some(path),
        _ => None,
    }
}

fn hint(deeper: &PathPattern) -> String {
    format!("`*` matches one segment; `{deeper}` matches all below")
}
