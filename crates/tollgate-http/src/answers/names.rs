//! The names of limits, as strings of structured fields.

use smallvec::SmallVec;

use crate::LimitState;

/// The longest name in bytes, without what escapes it.
pub(crate) const MAX_NAME: usize = 256;

/// The names of an answer's limits as strings of structured fields, in quotes. They are printable
/// ASCII, and each is different from the ones before it.
pub(super) struct Names {
    text: SmallVec<[u8; 96]>,
    /// The position after each name.
    ends: SmallVec<[usize; 8]>,
}

impl Names {
    pub(super) fn of<'a>(limits: impl Iterator<Item = LimitState<'a>>) -> Self {
        Self::of_texts(limits.map(|limit| limit.name()))
    }

    pub(super) fn of_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut names = Self {
            text: SmallVec::new(),
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
        let name = range.and_then(|(start, end)| self.text.get(start..end));
        name.unwrap_or(b"\"\"")
    }

    fn push(&mut self, name: &str) {
        let start = self.text.len();
        self.text.push(b'"');
        for char in name.chars().take(MAX_NAME) {
            match char {
                '"' | '\\' => self.text.extend_from_slice(&[b'\\', char as u8]),
                ' '..='~' => self.text.push(char as u8),
                _ => self.text.push(b'_'),
            }
        }
        let end = self.text.len();
        self.text.push(b'"');
        // The second limit of this name has the number 2.
        let mut number = 2_u64;
        while self.is_taken(start) {
            self.text.truncate(end);
            self.text.push(b'-');
            let mut digits = itoa::Buffer::new();
            self.text
                .extend_from_slice(digits.format(number).as_bytes());
            self.text.push(b'"');
            number = number.saturating_add(1);
        }
        self.ends.push(self.text.len());
    }

    /// Returns whether the name that starts here is one of those before it.
    fn is_taken(&self, start: usize) -> bool {
        let name = self.text.get(start..);
        (0..self.ends.len()).any(|index| Some(self.get(index)) == name)
    }
}
