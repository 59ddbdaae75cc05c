//! The names of limits, as strings of structured fields.

use smallvec::SmallVec;

use super::value::Value;
use crate::LimitState;

/// The longest name in bytes, without what escapes it.
const MAX_NAME: usize = 256;

/// The names of an answer's limits as strings of structured fields, in quotes. They are printable
/// ASCII, and each is different from the ones before it.
pub(super) struct Names {
    text: Value,
    /// The position after each name.
    ends: SmallVec<[usize; 8]>,
}

impl Names {
    pub(super) fn of<'a>(limits: impl Iterator<Item = LimitState<'a>>) -> Self {
        Self::of_texts(limits.map(|limit| limit.name()))
    }

    pub(super) fn of_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut names = Self {
            text: Value::default(),
            ends: SmallVec::new(),
        };
        for text in texts {
            names.push(text);
        }
        names
    }

    /// Returns all names, in the order of the limits.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index))
    }

    /// Returns the name of a limit, by its position.
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before).copied(),
            None => Some(0),
        };
        let range = start.zip(self.ends.get(index).copied());
        let name = range.and_then(|(start, end)| self.text.as_bytes().get(start..end));
        name.unwrap_or(b"\"\"")
    }

    fn push(&mut self, name: &str) {
        let mut escaped = Value::default();
        escaped.text("\"");
        escape(name, &mut escaped);
        // The second limit of this name has the number 2.
        let mut number = 1_u64;
        loop {
            let mut candidate = escaped.clone();
            if number > 1 {
                candidate.text("-");
                candidate.number(number);
            }
            candidate.text("\"");
            if self.iter().all(|name| name != candidate.as_bytes()) {
                self.text.text(candidate.as_bytes());
                self.ends.push(self.text.as_bytes().len());
                return;
            }
            number = number.saturating_add(1);
        }
    }
}

/// Writes the name of a limit that is the only one.
pub(super) fn write(name: &str, value: &mut Value) {
    value.text("\"");
    escape(name, value);
    value.text("\"");
}

/// Writes a name as it is in quotes.
fn escape(name: &str, value: &mut Value) {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~');
    if name.len() <= MAX_NAME && name.as_bytes().iter().all(is_plain) {
        return value.text(name);
    }
    for char in name.chars().take(MAX_NAME) {
        let mut byte = [0; 1];
        match char {
            '"' => value.text("\\\""),
            '\\' => value.text("\\\\"),
            ' '..='~' => value.text(char.encode_utf8(&mut byte)),
            _ => value.text("_"),
        }
    }
}
