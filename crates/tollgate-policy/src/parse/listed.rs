//! Checks names that may be facts or registered by the program.

use super::fact::{self, Allowed};
use super::field::refuse_text;
use super::place::Place;
use crate::facts::{FactKind, FactName};
use crate::file::{At, PolicyFile};
use crate::problem::Problems;

impl PolicyFile {
    /// Returns an error for each plain name in a `key` or in `plan.by` that is neither registered
    /// nor in the file's list `facts`. If the file has no such list, each name may be a fact.
    ///
    /// Other places name facts alone, so they are checked when the file is read.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    ///
    /// let text = "facts = ['user']\n[[rule]]\nname = 'a'\nlimit = '1/s'\nkey = ['usr', 'shard']";
    /// let file = PolicyFile::from_toml(text)?;
    /// assert_eq!(
    ///     file.check_facts(|name| name == "shard").to_string(),
    ///     "5:8: error: rule \"a\": key is \"usr\", but is not a fact that the file lists in \
    ///      `facts`; did you mean `user`? Known: method, path, host, client-ip, user"
    /// );
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn check_facts(&self, is_registered: impl Fn(&str) -> bool) -> Problems {
        let mut problems = Problems::new();
        let allowed = Allowed {
            facts: self.facts.as_deref(),
            captures: &[],
            answer: false,
        };
        let mut check = |place: &Place<'_>, name: &At<String>| {
            let is_plain = matches!(FactName::new(name).kind(), FactKind::Other(_));
            if is_plain && !is_registered(name) {
                if let Err(message) = fact::check(name, allowed) {
                    refuse_text(place, name, message, &mut problems);
                }
            }
        };
        for (index, rule) in self.numbered() {
            let place = Place::rule(rule, index);
            for part in &rule.key {
                check(&place.field("key"), part);
            }
            if let Some(plan) = &rule.plan {
                check(&place.field("plan").field("by"), &plan.by);
            }
        }
        problems
    }
}
