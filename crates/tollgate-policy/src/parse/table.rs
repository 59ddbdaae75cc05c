//! Reads tables whose fields are known.

use super::field::{Field, refuse_field};
use super::fields;
use super::nearest::known_names;
use super::place::Place;
use super::tree::{Node, Tree};
use crate::file::At;
use crate::problem::{Position, Problems};

/// A table, and its place for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'p> {
    pub(super) entries: &'p [(At<String>, Node)],
    pub(super) place: Place<'p>,
    pub(super) position: Option<Position>,
}

impl<'p> Table<'p> {
    /// Reads a value as a table. `what` says what else the value may be.
    pub(super) fn of(field: Field<'p>, what: &str, problems: &mut Problems) -> Option<Self> {
        match &field.node.value {
            Tree::Table(entries) => Some(Self {
                entries,
                place: field.place,
                position: field.node.position,
            }),
            _ => {
                field.refuse(format!("must be {what}"), problems);
                None
            }
        }
    }

    /// Reports the fields that such a table does not have. `kind` says what the table is, and
    /// `table` is its name in the list of all fields.
    pub(super) fn only(&self, kind: &str, table: &str, problems: &mut Problems) {
        let known = fields::of(table);
        for (name, _) in self.entries {
            if !known.contains(&name.as_str()) {
                // If no more problems are kept, the message needs no list of names.
                let names = match problems.is_full() {
                    true => String::new(),
                    false => known_names(name, known.iter().copied()),
                };
                let message = format!("is not a field of {kind}{names}");
                refuse_field(&self.place.field(name), name.position, message, problems);
            }
        }
    }

    /// Returns a field, if the table has it.
    pub(super) fn get(&'p self, name: &'p str) -> Option<Field<'p>> {
        let (_, node) = self.entries.iter().find(|(known, _)| known.value == name)?;
        Some(Field {
            node,
            place: self.place.field(name),
        })
    }

    /// Returns a field that the table must have.
    pub(super) fn need(&'p self, name: &'p str, problems: &mut Problems) -> Option<Field<'p>> {
        let found = self.get(name);
        if found.is_none() {
            self.refuse(name, "is missing", problems);
        }
        found
    }

    /// Reports what is wrong with a field, whether it is there or not.
    pub(super) fn refuse(&self, name: &str, message: impl AsRef<str>, problems: &mut Problems) {
        let known = self.entries.iter().find(|(known, _)| known.value == name);
        let position = known.map_or(self.position, |(known, _)| known.position);
        refuse_field(&self.place.field(name), position, message, problems);
    }
}
