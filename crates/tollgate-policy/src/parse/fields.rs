//! Builds tables field by field, and hands trees to serde.

use serde::{Serialize, Serializer};

use super::tree::{Entries, Node, Tree};

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) | Self::Other(text) => serializer.serialize_str(text),
            Self::Integer(number) => match u64::try_from(*number) {
                Ok(number) => serializer.serialize_u64(number),
                Err(_) => serializer.serialize_i128(*number),
            },
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::List(list) => serializer.collect_seq(list.iter().map(|node| &node.value)),
            Self::Table(entries) => {
                let entries = entries
                    .iter()
                    .map(|(name, node)| (&name.value, &node.value));
                serializer.collect_map(entries)
            }
        }
    }
}

/// A table that is written field by field.
#[derive(Default)]
pub(super) struct Fields(Entries);

impl Fields {
    pub(super) fn with(mut self, name: &str, value: Tree) -> Self {
        self.push(name, value);
        self
    }

    pub(super) fn push(&mut self, name: &str, value: Tree) {
        self.0.push((String::from(name).into(), value.into()));
    }

    /// Adds a field to the table of this name, which is added if it is not there yet.
    pub(super) fn push_in(&mut self, table: &str, name: &str, value: Tree) {
        let field = (String::from(name).into(), value.into());
        let known = self.0.iter_mut().find(|(known, _)| known.value == table);
        match known.map(|(_, node)| &mut node.value) {
            Some(Tree::Table(fields)) => fields.push(field),
            _ => self.push(table, Tree::Table(vec![field])),
        }
    }

    pub(super) fn push_if(&mut self, condition: bool, name: &str, value: impl FnOnce() -> Tree) {
        if condition {
            self.push(name, value());
        }
    }

    pub(super) fn push_some<T>(
        &mut self,
        name: &str,
        value: Option<&T>,
        write: impl FnOnce(&T) -> Tree,
    ) {
        if let Some(value) = value {
            self.push(name, write(value));
        }
    }

    /// Adds a choice, unless it is the default.
    pub(super) fn push_choice<T: Copy + Default + PartialEq>(
        &mut self,
        name: &str,
        choices: &[(&'static str, T)],
        choice: T,
    ) {
        let known = choices.iter().find(|(_, known)| *known == choice);
        let text = known.map_or("", |(text, _)| text);
        self.push_if(choice != T::default(), name, || Tree::text(text));
    }

    pub(super) fn table(self) -> Tree {
        Tree::Table(self.0)
    }
}

/// Writes a list, or its element alone if it has just one.
pub(super) fn one_or_more<T>(list: &[T], write: impl Fn(&T) -> Tree) -> Tree {
    match list {
        [one] => write(one),
        _ => many(list, write),
    }
}

pub(super) fn many<T>(list: &[T], write: impl Fn(&T) -> Tree) -> Tree {
    Tree::List(list.iter().map(|value| Node::from(write(value))).collect())
}
