//! Explanations as text.

use std::fmt;

use super::{Applied, Asks, Cost, Explained, Explanation, KeyPart, List, Listed};
use crate::when::Shown;

/// Says what a policy does with a request, in a few words.
pub(super) fn summary(entry: Option<&Listed>, rules: &[Explained]) -> String {
    if let Some(Listed { list, name, status }) = entry {
        let status = status.map_or_else(String::new, |status| format!(", with status {status}"));
        return match list {
            List::Deny => format!("denied by {name}, an entry of the list `deny`{status}"),
            List::Allow => format!("allowed by {name}, an entry of the list `allow`"),
        };
    }
    let applied = |rule: &&Explained| rule.applies == Applied::Yes;
    let denies = |rule: &Explained| {
        let why = rule.asks.as_ref()?.denies.as_ref()?;
        Some(format!("denied by {}: {why}", rule.name))
    };
    if let Some(denied) = rules.iter().filter(applied).find_map(denies) {
        return denied;
    }
    let names: Vec<_> = rules
        .iter()
        .filter(applied)
        .map(|rule| rule.name.as_str())
        .collect();
    match &*names {
        [] if rules.iter().any(|rule| rule.applies == Applied::Shadow) => {
            "no limit: only shadow rules apply".into()
        }
        [] => "no limit: no rule applies".into(),
        names => format!("asks {}", names.join(" and ")),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)?;
        for rule in &self.rules {
            write!(f, "\n{rule}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.name, self.applies, self.why)?;
        match &self.asks {
            Some(asks) => write!(f, "; {asks}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "applies",
            Self::Shadow => "applies as a shadow rule",
            Self::No => "does not apply",
        })
    }
}

impl fmt::Display for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key: {}; ", key(self))?;
        match &self.denies {
            Some(why) => write!(f, "denies: {why}")?,
            None => write!(f, "limit: {}; cost: {}", limits(self), self.cost)?,
        }
        match self.store.as_str() {
            crate::parse::MEMORY => {}
            store => write!(f, "; store: {store}")?,
        }
        match self.status {
            Some(status) => write!(f, "; status: {status}"),
            None => Ok(()),
        }
    }
}

fn key(asks: &Asks) -> String {
    let parts: Vec<_> = asks.key.iter().map(ToString::to_string).collect();
    match parts.is_empty() {
        true => "none".into(),
        false => parts.join(", "),
    }
}

fn limits(asks: &Asks) -> String {
    let limits = asks.limits.join(", ");
    match &asks.plan {
        Some(plan) => format!("{limits} (plan {}: {})", plan.name, plan.why),
        None if asks.is_override => format!("{limits} (override of this key)"),
        None => limits,
    }
}

impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.value, &self.ambiguous) {
            (Some(value), _) => write!(f, "{} = {}", self.name, Shown(value)),
            (None, Some(values)) => write!(f, "{} is {values}", self.name),
            (None, None) => write!(f, "{} is missing", self.name),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settled = |fact: &String| format!("settled by {fact}");
        let parts = self.why.iter().cloned();
        let parts: Vec<_> = parts.chain(self.settle.iter().map(settled)).collect();
        match parts.is_empty() {
            true => write!(f, "{}", self.permits),
            false => write!(f, "{} ({})", self.permits, parts.join("; ")),
        }
    }
}
