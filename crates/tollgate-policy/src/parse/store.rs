//! Reads the server that has a policy's limits. No message shows its URL.

use super::field::{Field, refuse_field};
use super::rule_fields::fallback;
use super::secret::secret;
use super::table::Table;
use super::tree::{Tree, at};
use crate::file::{At, Fallback, SecretSource, StoreSettings, server_url};
use crate::problem::Problems;

/// The store in this process: that of rules that do not name one, unless the file names a server.
pub(crate) const MEMORY: &str = "memory";
/// The store on the server that the file names.
pub(crate) const REDIS: &str = "redis";

/// The namespace of keys, if the file does not say it.
const NAMESPACE: &str = "tollgate";
/// The most characters of a namespace, as `tollgate-redis` has it.
const MAX_NAMESPACE: usize = 64;

/// The store of rules that do not name one, and the fallback of rules on the server that have none.
pub(super) struct StoreOfRules {
    pub(super) store: At<String>,
    pub(super) fallback: Option<At<Fallback>>,
    /// Whether the file has the table of a server.
    pub(super) has_server: bool,
}

/// Reads the settings of the server, and what they mean for rules.
pub(super) fn store(
    field: Option<Field<'_>>,
    problems: &mut Problems,
) -> (Option<StoreSettings>, StoreOfRules) {
    let Some(field) = field else {
        let of_rules = StoreOfRules {
            store: String::from(MEMORY).into(),
            fallback: None,
            has_server: false,
        };
        return (None, of_rules);
    };
    let position = field.node.position;
    // If the fallback is not known, that is reported here, and not again for each rule.
    let any = || Some(Fallback::Closed.into());
    let of_rules = |fallback| StoreOfRules {
        store: at(REDIS.into(), position),
        fallback,
        has_server: true,
    };
    let Tree::Table(entries) = &field.node.value else {
        let message = "must be a table, written as [store], with `redis`";
        refuse_field(&field.place, position, message, problems);
        return (None, of_rules(any()));
    };
    let table = Table {
        entries,
        place: field.place,
        position,
    };
    table.only("a store", "store", problems);
    let url = table.need("redis", problems);
    let url = url.and_then(|url| address(url, problems));
    let namespace = match table.get("namespace") {
        Some(name) => namespace(name, problems),
        None => Some(String::from(NAMESPACE).into()),
    };
    let budget = table.get("budget");
    let budget = budget.and_then(|budget| budget.duration(problems));
    let known = table.get("fallback");
    let known = known.map(|field| fallback(field, problems));
    let settings = url.zip(namespace).map(|(redis, namespace)| StoreSettings {
        redis,
        namespace,
        budget,
        fallback: known.clone().flatten(),
    });
    let fallback = known.and_then(|known| known.or_else(any));
    (settings, of_rules(fallback))
}

/// Reads the URL of the server, or the name of the variable that has it.
fn address(field: Field<'_>, problems: &mut Problems) -> Option<At<SecretSource>> {
    let what = "must be the URL of a server, or a table with `env`";
    let address = secret(field, "a store's address", "store.redis", what, problems)?;
    if let SecretSource::Text(url) = &address.value {
        if let Err(message) = server_url::check(url.reveal()) {
            refuse_field(&field.place, address.position, message, problems);
            return None;
        }
    }
    Some(address)
}

/// Reads the namespace of the keys on the server.
fn namespace(field: Field<'_>, problems: &mut Problems) -> Option<At<String>> {
    let name = field.text("text", problems)?;
    let is_good = |byte: u8| byte.is_ascii_graphic() && !b"{}".contains(&byte);
    if name.len() > MAX_NAMESPACE || !name.bytes().all(is_good) {
        let message = format!(
            "must be 1 to {MAX_NAMESPACE} characters of printable ASCII, without spaces and braces"
        );
        field.refuse(message, problems);
        return None;
    }
    Some(name)
}

/// Reads the name of a rule's store. A message shows no text that may be the URL of a server.
pub(super) fn name(field: Field<'_>, problems: &mut Problems) -> Option<At<String>> {
    let is_server = match &field.node.value {
        Tree::Text(text) => text.contains("://"),
        Tree::Table(_) | Tree::List(_) => true,
        _ => false,
    };
    if is_server {
        let message = "must be a store's name, such as \"redis\"; its server is in the table \
                       [store], or in `store = { ... }` before all rules";
        refuse_field(&field.place, field.node.position, message, problems);
        return None;
    }
    field.text("a store's name", problems)
}
