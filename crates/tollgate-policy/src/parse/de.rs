//! Reads a policy from what serde reads, such as YAML and JSON.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::top;
use super::tree::{Entries, Node, Tree};
use crate::file::PolicyFile;
use crate::file::disk::MAX_BYTES;
use crate::problem::{Problem, Problems};

/// How deep values may be nested. TOML allows the same.
const MAX_DEPTH: usize = 80;
/// The most values of a file. References in YAML can repeat a value many times.
const MAX_VALUES: usize = 4_000_000;

impl PolicyFile {
    /// Reads a policy from any format that describes itself, such as YAML and JSON. The inner error
    /// has all that is wrong with the policy, without positions.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    ///
    /// let mut json = serde_json::Deserializer::from_str(r#"{ "rule": [{ "name": "api" }] }"#);
    /// let problems = PolicyFile::from_serde(&mut json)?.unwrap_err();
    /// assert_eq!(
    ///     problems.to_string(),
    ///     "error: rule \"api\": limit is missing; write `limit` or `plan`"
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An error of the format itself, or of a file that is too large.
    pub fn from_serde<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Result<Self, Problems>, D::Error> {
        let mut room = Room {
            values: MAX_VALUES,
            bytes: MAX_BYTES,
        };
        let seed = Seed {
            depth: 0,
            room: &mut room,
        };
        let mut problems = Problems::new();
        let file = match seed.deserialize(deserializer)?.value {
            Tree::Table(entries) => top::file(&entries, &mut problems),
            other => {
                let value = crate::problem::Excerpt::of_value(&other);
                problems.push(Problem::error("the policy", value, "must be a table"));
                Self::default()
            }
        };
        Ok(problems.or(file))
    }
}

/// Reads a policy from any format that describes itself, such as YAML and JSON. These formats have
/// no positions, so errors only name the fields. The error lists all that is wrong.
impl<'de> serde::Deserialize<'de> for PolicyFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_serde(deserializer)?.map_err(D::Error::custom)
    }
}

/// What a file may still have.
struct Room {
    values: usize,
    bytes: usize,
}

impl Room {
    fn value<E: Error>(&mut self) -> Result<(), E> {
        let left = self.values.checked_sub(1);
        self.values =
            left.ok_or_else(|| E::custom(format!("the policy has more than {MAX_VALUES} values")))?;
        Ok(())
    }

    fn text<E: Error>(&mut self, text: &str) -> Result<(), E> {
        let left = self.bytes.checked_sub(text.len());
        self.bytes = left.ok_or_else(|| E::custom("the policy has more than 16 MiB of text"))?;
        Ok(())
    }
}

/// Reads one value.
struct Seed<'r> {
    depth: usize,
    room: &'r mut Room,
}

impl Seed<'_> {
    fn inner<E: Error>(&mut self) -> Result<Seed<'_>, E> {
        if self.depth >= MAX_DEPTH {
            let message = format!("the policy nests values more than {MAX_DEPTH} deep");
            return Err(E::custom(message));
        }
        Ok(Seed {
            depth: self.depth + 1,
            room: &mut *self.room,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.room.value()?;
        deserializer.deserialize_any(self).map(Node::from)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a policy")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Integer(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Integer(number.into()))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Tree, E> {
        Ok(Tree::Integer(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Tree, E> {
        Ok(Tree::Other(number.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tree, E> {
        self.room.text(text)?;
        Ok(Tree::Text(text.into()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Tree, E> {
        self.room.text(&text)?;
        Ok(Tree::Text(text))
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Other("null".into()))
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Tree, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(self.inner()?)? {
            nodes.push(node);
        }
        Ok(Tree::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries = Entries::new();
        let mut names = HashSet::new();
        while let Some(name) = map.next_key_seed(self.inner()?)? {
            let Some(name) = name.as_plain() else {
                let message = format!("the name of a field is {}, but must be text", name.value);
                return Err(A::Error::custom(message));
            };
            if !names.insert(name.clone()) {
                let name = crate::problem::quoted(&name);
                return Err(A::Error::custom(format!("the field {name} is given twice")));
            }
            let node = map.next_value_seed(self.inner()?)?;
            entries.push((name.into(), node));
        }
        Ok(Tree::Table(entries))
    }
}
