//! Checks a policy without making its tables, and warns of what is probably not meant.

mod costs;
mod covered;
mod exceptions;
mod names;
mod report;
mod tighter;
mod warnings;

use std::sync::Arc;

use crate::builder::PolicyBuilder;
use crate::compile::{Given, compile};
use crate::file::{Fallback, Format, PolicyFile};
use crate::limit::PolicyClock;
use crate::parse::read;
use crate::policy::hasher;
use crate::problem::Problems;
pub use warnings::warnings;
pub(crate) use warnings::warnings_with;

/// The most keys that a table has room for while a policy is checked, besides those with overrides.
const CAPACITY: u64 = 64;

impl<C: PolicyClock> PolicyBuilder<C> {
    /// Returns all errors and [`warnings`](crate::warnings) of a policy in TOML. It takes little
    /// memory, whatever the capacities of the rules are.
    ///
    /// There are no warnings if the text can't be read as a policy: invalid parts are skipped, so
    /// warnings could be wrong.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'api'\nlimit = '10/s'\nstore = 'disk'\nfallback = 'closed'\n";
    /// assert_eq!(
    ///     Policy::builder().check_toml(text).to_string(),
    ///     "4:9: error: rule \"api\": store is \"disk\", but must be a registered store; known: \
    ///      memory"
    /// );
    /// ```
    #[must_use]
    pub fn check_toml(self, text: &str) -> Problems {
        self.check_text(text, Format::Toml)
    }

    /// Returns all errors and [`warnings`](crate::warnings) of a policy in a format, as
    /// [`check_toml`](Self::check_toml) does.
    #[must_use]
    pub fn check_text(self, text: &str, format: Format) -> Problems {
        let (file, problems) = read(text, format);
        self.check_read(file, problems)
    }

    /// Returns the errors and [`warnings`](crate::warnings) of a policy that was read, as
    /// [`check_toml`](Self::check_toml) does.
    #[must_use]
    pub fn check(self, file: &PolicyFile) -> Problems {
        self.check_read(file.clone(), Problems::new())
    }

    fn check_read(self, mut file: PolicyFile, mut problems: Problems) -> Problems {
        if !problems.has_errors() {
            let is_registered = |name: &str| self.registry.resolvers.contains_key(name);
            problems.append(warnings_with(&file, is_registered));
        }
        for rule in &mut file.rules {
            let overrides = u64::try_from(rule.overrides.len()).unwrap_or(u64::MAX);
            let enough = overrides.saturating_mul(2).saturating_add(CAPACITY);
            rule.capacity.value = rule.capacity.value.min(enough);
            let fallback = rule.fallback.as_mut().map(|it| &mut it.value);
            if let Some(Fallback::Local { keys, .. }) = fallback {
                keys.value = keys.value.min(CAPACITY);
            }
        }
        let given = Given {
            registry: Arc::new(self.registry),
            clock: self.clock,
            hasher: hasher(None),
            previous: None,
            saved: None,
        };
        let _ = compile(&file, given, &mut problems);
        problems
    }
}
