//! A file as a tree of values, whether it was TOML, YAML or JSON.

use std::fmt;

use crate::file::At;
use crate::problem::Position;

/// A value, and where it begins.
pub(super) type Node = At<Tree>;

/// The fields of a table, in the order of the file.
pub(super) type Entries = Vec<(At<String>, Node)>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Text(String),
    Integer(i128),
    Bool(bool),
    List(Vec<Node>),
    Table(Entries),
    /// Something that no field is, such as a date, as it is written.
    Other(String),
}

impl Node {
    /// Returns the value as text, if it is text or an integer.
    pub(super) fn as_plain(&self) -> Option<String> {
        match &self.value {
            Tree::Text(text) => Some(text.clone()),
            Tree::Integer(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Returns the values of a list, or the value itself.
    pub(super) fn one_or_more(&self) -> &[Self] {
        match &self.value {
            Tree::List(list) => list,
            _ => std::slice::from_ref(self),
        }
    }
}

/// Returns a value at a position.
pub(super) fn at<T>(value: T, position: Option<Position>) -> At<T> {
    At { value, position }
}

/// Writes the value about as a file in TOML does.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Other(text) => f.write_str(text),
            Self::List(list) => {
                f.write_str("[")?;
                for (index, node) in list.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    write!(f, "{}", node.value)?;
                }
                f.write_str("]")
            }
            Self::Table(entries) if entries.is_empty() => f.write_str("{}"),
            Self::Table(entries) => {
                f.write_str("{")?;
                for (index, (name, node)) in entries.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { " " })?;
                    write!(f, "{} = {}", name.value, node.value)?;
                }
                f.write_str(" }")
            }
        }
    }
}
