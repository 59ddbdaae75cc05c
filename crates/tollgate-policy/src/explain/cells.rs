//! An explanation as a table.

use super::{Applied, Asks, Explained};

impl Explained {
    /// The titles of the columns of [`cells`](Self::cells).
    pub const COLUMNS: [&str; 6] = ["rule", "applies", "key", "limit", "cost", "why"];

    /// Returns what the rule does as a row of a table, which has these
    /// [columns](Self::COLUMNS).
    ///
    /// ```
    /// use tollgate_policy::{Policy, explain};
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '5/s'")?;
    /// let explanation = explain(policy.file(), &[("user", "ann")]);
    /// assert_eq!(
    ///     explanation.rules[0].cells(),
    ///     ["api", "yes", "user = ann", "5/s", "1", "it has no conditions"]
    /// );
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn cells(&self) -> [String; 6] {
        let denies = self.asks.as_ref().is_some_and(|asks| asks.denies.is_some());
        let applies = match self.applies {
            Applied::Yes if denies => "denies",
            Applied::Yes => "yes",
            Applied::Shadow => "shadow",
            Applied::No => "no",
        };
        let [key, limit, cost] = match &self.asks {
            Some(asks) => [key(asks), limit(asks), cost(asks)],
            None => [const { String::new() }; 3],
        };
        [
            self.name.clone(),
            applies.into(),
            key,
            limit,
            cost,
            self.reasons(),
        ]
    }

    /// Returns why the rule applies or does not, and why it asks what it asks.
    fn reasons(&self) -> String {
        let mut why = vec![self.why.clone()];
        if let Some(asks) = &self.asks {
            let settled = |fact: &String| format!("{fact} settles the cost");
            match &asks.denies {
                Some(denies) => why.push(denies.clone()),
                None => {
                    why.extend(asks.plan.as_ref().map(|plan| plan.why.clone()));
                    why.extend(asks.cost.why.clone());
                    why.extend(asks.cost.settle.as_ref().map(settled));
                }
            }
            let answered = |status| format!("a denial has status {status}");
            why.extend(asks.status.map(answered));
        }
        why.join("; ")
    }
}

fn key(asks: &Asks) -> String {
    let parts: Vec<_> = asks.key.iter().map(ToString::to_string).collect();
    parts.join(", ")
}

/// Returns the limits, and where they come from unless the rule itself says them.
fn limit(asks: &Asks) -> String {
    let mut limit = asks.limits.join(", ");
    if let Some(plan) = &asks.plan {
        limit.push_str(&format!(" (plan {})", plan.name));
    }
    if asks.is_override && !limit.is_empty() {
        limit.push_str(" (override)");
    }
    match asks.store.as_str() {
        "memory" => limit,
        _ if limit.is_empty() => limit,
        store => format!("{limit} in {store}"),
    }
}

fn cost(asks: &Asks) -> String {
    match asks.denies {
        Some(_) => String::new(),
        None => asks.cost.permits.to_string(),
    }
}
