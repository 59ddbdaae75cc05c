//! Reads the secret of keys. No message shows its value.

use super::field::{Field, refuse_field};
use super::table::Table;
use super::tree::{Tree, at};
use crate::file::secret::Secret;
use crate::file::{At, KeySecret};
use crate::problem::Problems;

/// The name of the field.
pub(super) const KEY_SECRET: &str = "key-secret";

pub(super) fn key_secret(field: Field<'_>, problems: &mut Problems) -> Option<At<KeySecret>> {
    let position = field.node.position;
    match &field.node.value {
        Tree::Text(text) => {
            let secret = Secret::new(text.as_str());
            Some(at(KeySecret::Text(secret), position))
        }
        Tree::Table(entries) => {
            let table = Table {
                entries,
                place: field.place,
                position,
            };
            table.only("a secret", KEY_SECRET, problems);
            let name = table.need("env", problems)?;
            match &name.node.value {
                Tree::Text(text) if is_name(text) => {
                    Some(at(KeySecret::Env(text.clone()), position))
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
            let message = "must be text, or a table with `env`";
            refuse_field(&field.place, position, message, problems);
            None
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}
