//! Reads secrets. No message shows their values.

use super::field::{Field, refuse_field};
use super::table::Table;
use super::tree::{Tree, at};
use crate::file::secret::Secret;
use crate::file::{At, SecretSource};
use crate::problem::Problems;

/// The name of the field.
pub(super) const KEY_SECRET: &str = "key-secret";

/// Reads the secret of keys.
pub(super) fn key_secret(field: Field<'_>, problems: &mut Problems) -> Option<At<SecretSource>> {
    let what = "must be text, or a table with `env`";
    secret(field, "a secret", KEY_SECRET, what, problems)
}

/// Reads a secret: a text, or a table with the name of a variable. `kind` says what it is, and
/// `table` is the name of its table in the list of all fields.
pub(super) fn secret(
    field: Field<'_>,
    kind: &str,
    table: &str,
    what: &str,
    problems: &mut Problems,
) -> Option<At<SecretSource>> {
    let position = field.node.position;
    match &field.node.value {
        Tree::Text(text) => {
            let secret = Secret::new(text.as_str());
            Some(at(SecretSource::Text(secret), position))
        }
        Tree::Table(entries) => {
            let fields = Table {
                entries,
                place: field.place,
                position,
            };
            fields.only(kind, table, problems);
            let name = fields.need("env", problems)?;
            match &name.node.value {
                Tree::Text(text) if is_name(text) => {
                    Some(at(SecretSource::Env(text.clone()), position))
                }
                _ => {
                    let message = "must be the name of an environment variable: letters, digits \
                                   and underscores, and no digit first";
                    refuse_field(&name.place, name.node.position, message, problems);
                    None
                }
            }
        }
        _ => {
            refuse_field(&field.place, position, what, problems);
            None
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}
