//! Text in which `*` stands for any text.

use std::fmt;

use memchr::memchr;

use super::error::{PatternError, PatternErrorKind};

/// A text in which each `*` stands for any text, including none.
///
/// Matching goes through the text once. It never tries a `*` again, so its time is bounded by the
/// length of the text, whatever the glob.
///
/// ```
/// use tollgate_policy::when::Glob;
///
/// let glob = Glob::parse(r"a*b*\*").unwrap();
/// assert!(glob.matches("a-b-*"));
/// assert!(!glob.matches("a-b-c"));
/// assert_eq!(glob.to_string(), r"a*b*\*");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    /// The texts between the stars. There is a star between each two.
    pieces: Box<[Box<str>]>,
}

impl Glob {
    /// Reads a glob. `\*` and `\\` stand for `*` and `\`.
    ///
    /// # Errors
    ///
    /// Returns an error if another character follows a `\`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        Self::parse_at(text, 0, "")
    }

    /// Reads a glob that begins at `offset` of a pattern. The characters of `special` can be
    /// escaped as well.
    pub(super) fn parse_at(text: &str, offset: usize, special: &str) -> Result<Self, PatternError> {
        let mut pieces = Vec::new();
        let mut piece = String::new();
        let mut chars = text.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => match chars.next() {
                    Some((_, next)) if next == '*' || next == '\\' || special.contains(next) => {
                        piece.push(next);
                    }
                    _ => return Err(PatternError::new(offset + at, PatternErrorKind::Escape)),
                },
                // Several stars are the same as one.
                '*' if piece.is_empty() && !pieces.is_empty() => {}
                '*' => pieces.push(std::mem::take(&mut piece).into()),
                _ => piece.push(char),
            }
        }
        pieces.push(piece.into());
        Ok(Self {
            pieces: pieces.into(),
        })
    }

    /// Whether the text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = &*self.pieces else {
            return self.literal() == Some(text);
        };
        let Some(rest) = text.strip_prefix(&**first) else {
            return false;
        };
        let Some(mut rest) = rest.strip_suffix(&**last) else {
            return false;
        };
        // The leftmost place for each piece leaves the most for those that follow.
        for piece in middle {
            match after(rest, piece) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        true
    }

    /// The text that the glob stands for, if it has no star.
    pub(super) fn literal(&self) -> Option<&str> {
        match &*self.pieces {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The text before the first star, and the text after the last one.
    pub(super) fn ends(&self) -> (&str, &str) {
        let first = self.pieces.first().map_or("", |piece| piece);
        (first, self.pieces.last().map_or("", |piece| piece))
    }

    /// Whether the text between the ends can be anything.
    pub(super) fn has_only_ends(&self) -> bool {
        self.pieces.len() == 2
    }

    /// The glob in lower case.
    pub(super) fn to_ascii_lowercase(&self) -> Self {
        let lower = |piece: &str| piece.to_ascii_lowercase().into();
        Self {
            pieces: self.pieces.iter().map(|piece| lower(piece)).collect(),
        }
    }

    /// Writes the glob, with a `\` before each of the characters of `special` too.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, special: &str) -> fmt::Result {
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0 {
                f.write_str("*")?;
            }
            escape(f, piece, special)?;
        }
        Ok(())
    }
}

/// What follows the leftmost place of `piece`.
fn after<'t>(text: &'t str, piece: &str) -> Option<&'t str> {
    let first = *piece.as_bytes().first()?;
    let mut rest = text;
    // To prepare a search in linear time takes longer than these, which are nearly always enough.
    for _ in 0..16 {
        rest = rest.get(memchr(first, rest.as_bytes())?..)?;
        if let Some(after) = rest.strip_prefix(piece) {
            return Some(after);
        }
        let mut chars = rest.chars();
        chars.next();
        rest = chars.as_str();
    }
    rest.split_once(piece).map(|(_, after)| after)
}

/// Writes a text in which nothing stands for something else.
pub(super) fn escape(f: &mut fmt::Formatter<'_>, text: &str, special: &str) -> fmt::Result {
    use fmt::Write;
    for char in text.chars() {
        if matches!(char, '*' | '\\') || special.contains(char) {
            f.write_char('\\')?;
        }
        f.write_char(char)?;
    }
    Ok(())
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "")
    }
}
