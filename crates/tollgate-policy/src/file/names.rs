//! The facts that a file reads.

use std::collections::BTreeSet;

use crate::facts::{FactKind, FactName};
use crate::file::{Applies, PolicyFile};

impl PolicyFile {
    /// Returns the names of the facts that the rules and lists read, of requests and of answers,
    /// and those that the file lists in `facts`.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    ///
    /// let text = "[[rule]]\nname = 'a'\nwhen = { path = '/a/{id}' }\nkey = ['user', 'path:id']\n\
    ///             limit = '1/s'";
    /// let names = PolicyFile::from_toml(text)?.fact_names();
    /// assert!(names.iter().map(|name| name.as_str()).eq(["path", "user"]));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn fact_names(&self) -> BTreeSet<FactName> {
        let mut names = BTreeSet::new();
        let listed = self.facts.iter().flatten();
        names.extend(listed.map(|name| FactName::new(name)));
        for entry in self.deny.iter().chain(&self.allow) {
            entry.when.add_facts(&mut names);
        }
        for rule in &self.rules {
            if let Applies::When(when) = &rule.when.value {
                when.add_facts(&mut names);
            }
            let by = rule.plan.iter().map(|plan| &plan.by);
            let texts = rule.key.iter().chain(by);
            names.extend(texts.map(|name| FactName::new(name)));
            let (estimate, settle) = (&rule.cost.estimate, &rule.cost.settle);
            let costs = estimate.iter().chain(settle);
            names.extend(costs.map(|name| name.value.clone()));
        }
        // The policy finds them in the path, which its conditions read.
        names.retain(|name| !matches!(name.kind(), FactKind::PathPart(_)));
        names
    }
}
