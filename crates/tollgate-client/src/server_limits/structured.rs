//! A reader of lists, dictionaries and their parameters in structured fields (RFC 9651).
//!
//! A field is split at its commas, and each member at its semicolons, where these are not inside of
//! a string. The crate `sfv` reads each part, so a malformed part does not spoil the others. Inner
//! lists are skipped.

use sfv::{BareItemFromInput, KeyRef, Parser};

/// A bare item.
pub(super) type Item<'a> = BareItemFromInput<'a>;

/// A member of a list or of a dictionary.
#[derive(Debug, Clone)]
pub(super) struct Member<'a> {
    /// The key, if it is a member of a dictionary.
    pub(super) key: Option<&'a str>,
    pub(super) item: Item<'a>,
    parameters: Split<'a>,
}

impl<'a> Member<'a> {
    fn of(text: &'a [u8]) -> Option<Self> {
        let mut parts = Split::new(text, b';');
        let first = std::str::from_utf8(parts.next()?).ok()?;
        let (key, item) = match key_and_value(first) {
            Some((key, value)) => (Some(key), value),
            None => (None, first),
        };
        Some(Self {
            key,
            item: item_of(item)?,
            parameters: parts,
        })
    }

    /// Returns the parameters, in their order. If two have the same name, the last one counts.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'a str, Item<'a>)> + use<'a> {
        self.parameters.filter_map(|text| {
            let text = std::str::from_utf8(text).ok()?.trim_start_matches(' ');
            match key_and_value(text) {
                Some((key, value)) => Some((key, item_of(value)?)),
                // Without a value it is true.
                None => Some((key_of(text)?, Item::Boolean(true))),
            }
        })
    }
}

/// Reads the members of one line of a list or of a dictionary. Several lines are read one by one,
/// since no member can begin in one line and end in another.
pub(super) fn members(line: &[u8]) -> impl Iterator<Item = Option<Member<'_>>> {
    Split::new(line, b',').map(|text| Member::of(text.trim_ascii()))
}

/// Splits a text at the separators that are outside of strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Split<'a> {
    pub(super) const fn new(text: &'a [u8], separator: u8) -> Self {
        Self {
            rest: Some(text),
            separator,
        }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let (mut is_string, mut is_escaped) = (false, false);
        let end = rest.iter().position(|&byte| {
            let is_end = byte == self.separator && !is_string;
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_string => is_escaped = true,
                b'"' => is_string = !is_string,
                _ => {}
            }
            is_end
        });
        match end.and_then(|end| rest.split_at_checked(end)) {
            Some((part, rest)) => {
                self.rest = rest.get(1..);
                Some(part)
            }
            None => Some(rest),
        }
    }
}

/// Reads a bare item that is all of a text.
fn item_of(text: &str) -> Option<Item<'_>> {
    // The parser skips spaces around an item, but inside of a member there are none.
    let is_bare = !text.starts_with(' ') && !text.ends_with(' ');
    is_bare.then(|| Parser::new(text).parse_item().ok())?
}

/// Splits `key=value`. Returns `None` if the text has another form.
fn key_and_value(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=')?;
    Some((key_of(key)?, value))
}

fn key_of(text: &str) -> Option<&str> {
    let key = KeyRef::from_str(text).ok()?;
    Some(key.as_str())
}

/// Returns a number of permits or seconds: an integer that is not negative.
pub(super) fn number(item: &Item<'_>) -> Option<u64> {
    u64::try_from(i64::from(item.as_integer()?)).ok()
}

/// Returns a string or a token, or `None` if it is longer than `longest`.
pub(super) fn text(item: &Item<'_>, longest: usize) -> Option<String> {
    let text = match item {
        Item::String(text) => text.as_str(),
        Item::Token(text) => text.as_str(),
        _ => return None,
    };
    (text.len() <= longest).then(|| text.to_owned())
}

/// Returns the bytes of a byte sequence, or `None` if there are more than `longest`.
pub(super) fn bytes(item: Item<'_>, longest: usize) -> Option<Vec<u8>> {
    match item {
        Item::ByteSequence(bytes) if bytes.len() <= longest => Some(bytes),
        _ => None,
    }
}
