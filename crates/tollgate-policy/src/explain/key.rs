//! The key of a request.

use super::KeyPart;
use crate::facts::{FactKind, FactName, FactValue, Facts};
use crate::file::{Networks, Rule};
use crate::rule::{RuleFact, can_be_key, of_values};
use crate::when::{ShownValues, clean_path, lower_host};

/// Returns the parts of a rule's key for a request.
pub(super) fn key(rule: &Rule, facts: &(impl Facts + ?Sized)) -> Vec<KeyPart> {
    let part = |name: &str| {
        let fact = RuleFact::of(rule, name);
        let values = fact.values(facts);
        let ambiguous = ShownValues(&values).to_string();
        let fact = &fact.name;
        let value = of_values(values, rule.repeated);
        let is_ambiguous = value.is_err();
        let value = value.ok().flatten().filter(|it| can_be_key(fact, it));
        KeyPart {
            name: name.into(),
            value: value.map(|value| shown(fact, &value, &rule.network)),
            ambiguous: is_ambiguous.then_some(ambiguous),
        }
    };
    rule.key.iter().map(|name| part(name)).collect()
}

/// Returns a value as the key has it. The same address, host or path in other spellings is the
/// same.
fn shown(fact: &FactName, value: &FactValue<'_>, networks: &Networks) -> String {
    let address = match (value, fact.kind()) {
        (FactValue::Address(_), _) | (_, FactKind::ClientIp) => value.as_address(),
        _ => None,
    };
    if let Some(address) = address {
        return networks.text_of(address);
    }
    let text = value.as_text();
    match fact.kind() {
        FactKind::Host => {
            let mut host = String::new();
            lower_host(&text, |lower| host.push_str(lower));
            host
        }
        FactKind::Path => clean_path(&text).as_str().into(),
        _ => text.into_owned(),
    }
}
