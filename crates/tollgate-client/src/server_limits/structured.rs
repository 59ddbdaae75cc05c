//! A reader of structured fields (RFC 9651): lists, dictionaries, items and their parameters.
//!
//! A field is split at its commas, and each member at its semicolons, where these are not inside of
//! a string. Each part is then read by the grammar of the RFC. A malformed part does not spoil the
//! others. Inner lists are skipped.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The largest integer.
pub(super) const MAX_NUMBER: u64 = 999_999_999_999_999;

/// The RFC asks parsers to accept byte sequences without padding, and with bits that are left over.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A bare item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Integer(i64),
    /// A string, without its quotes, with its escapes.
    Text(&'a [u8]),
    Token(&'a [u8]),
    /// A byte sequence in base64.
    Bytes(&'a [u8]),
    /// A decimal, a boolean, a date or a display string. No field has one that counts.
    Other,
}

/// A member of a list or of a dictionary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    /// The key, if it is a member of a dictionary.
    pub(super) key: Option<&'a [u8]>,
    pub(super) item: Item<'a>,
    parameters: Split<'a>,
}

impl<'a> Member<'a> {
    fn of(text: &'a [u8]) -> Option<Self> {
        let mut parts = Split::new(text, b';');
        let first = parts.next()?;
        let (key, item) = match key_and_value(first) {
            Some((key, value)) => (Some(key), value),
            None => (None, first),
        };
        Some(Self {
            key,
            item: Item::of(item)?,
            parameters: parts,
        })
    }

    /// Returns the parameters, in their order. Of two with one name the last counts.
    pub(super) fn parameters(self) -> impl Iterator<Item = (&'a [u8], Item<'a>)> {
        self.parameters.filter_map(|text| {
            let text = trim_spaces(text);
            match key_and_value(text) {
                Some((key, value)) => Some((key, Item::of(value)?)),
                // Without a value it is true.
                None => is_key(text).then_some((text, Item::Other)),
            }
        })
    }
}

/// Reads the members of one line of a list or of a dictionary. Several lines are read one by one,
/// since no member can begin in one line and end in another.
pub(super) fn members(line: &[u8]) -> impl Iterator<Item = Option<Member<'_>>> {
    Split::new(line, b',').map(|text| Member::of(text.trim_ascii()))
}

/// The parts of a text between separators that are not inside of a string.
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

impl<'a> Item<'a> {
    /// Reads a bare item that is all of a text.
    fn of(text: &'a [u8]) -> Option<Self> {
        match text {
            [b'"', inner @ .., b'"'] => is_string(inner).then_some(Self::Text(inner)),
            [b':', inner @ .., b':'] => inner
                .iter()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'/' | b'='))
                .then_some(Self::Bytes(inner)),
            [b'?', b'0' | b'1'] => Some(Self::Other),
            [b'@', date @ ..] => matches!(number(date), Some(Self::Integer(_))).then_some(Self::Other),
            [b'%', b'"', .., b'"'] => Some(Self::Other),
            [b'-' | b'0'..=b'9', ..] => number(text),
            [b'a'..=b'z' | b'A'..=b'Z' | b'*', rest @ ..] => {
                rest.iter().all(is_token).then_some(Self::Token(text))
            }
            _ => None,
        }
    }

    /// Returns a number of permits or seconds: an integer that is not negative.
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// Returns a string or a token. There is none if it is longer than this.
    pub(super) fn text(self, longest: usize) -> Option<String> {
        let text = match self {
            Self::Token(text) => text.to_vec(),
            Self::Text(text) => {
                // An escape has two bytes at most.
                if text.len() / 2 > longest {
                    return None;
                }
                let mut unescaped = Vec::with_capacity(text.len());
                let mut bytes = text.iter();
                while let Some(byte) = bytes.next() {
                    let byte = if *byte == b'\\' {
                        bytes.next()
                    } else {
                        Some(byte)
                    };
                    unescaped.extend(byte);
                }
                unescaped
            }
            _ => return None,
        };
        if text.len() > longest {
            return None;
        }
        String::from_utf8(text).ok()
    }

    /// Returns the bytes of a byte sequence. There are none if they are more than this.
    pub(super) fn bytes(self, longest: usize) -> Option<Vec<u8>> {
        let Self::Bytes(text) = self else {
            return None;
        };
        if text.len() / 4 > longest / 3 + 1 {
            return None;
        }
        let bytes = BASE64.decode(text).ok()?;
        (bytes.len() <= longest).then_some(bytes)
    }
}

/// Splits `key=value`. There is none if the text has no such form.
fn key_and_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'=')?;
    let (key, value) = text.split_at_checked(end)?;
    let value = value.get(1..)?;
    is_key(key).then_some((key, value))
}

fn is_key(text: &[u8]) -> bool {
    let is_rest =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte);
    match text {
        [b'a'..=b'z' | b'*', rest @ ..] => rest.iter().all(is_rest),
        _ => false,
    }
}

/// Returns whether a text can be inside of a string's quotes.
fn is_string(text: &[u8]) -> bool {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let is_fine = match byte {
            b'\\' => matches!(bytes.next(), Some(b'"' | b'\\')),
            b'"' => false,
            byte => matches!(byte, b' '..=b'~'),
        };
        if !is_fine {
            return false;
        }
    }
    true
}

fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(byte)
}

/// Reads an integer of at most 15 digits, or a decimal of at most 12 digits before the point and 3
/// after it.
fn number<'a>(text: &[u8]) -> Option<Item<'a>> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut parts = digits.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (parts.next()?, parts.next());
    let are_digits =
        |text: &[u8], most| (1..=most).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    if let Some(fraction) = fraction {
        return (are_digits(whole, 12) && are_digits(fraction, 3)).then_some(Item::Other);
    }
    if !are_digits(whole, 15) {
        return None;
    }
    let number = whole.iter().fold(0, |number: i64, digit| {
        number
            .saturating_mul(10)
            .saturating_add(i64::from(digit.saturating_sub(b'0')))
    });
    Some(Item::Integer(if is_negative {
        number.saturating_neg()
    } else {
        number
    }))
}

/// Returns a text without the spaces before it.
fn trim_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| *byte != b' ');
    start.and_then(|start| text.get(start..)).unwrap_or(b"")
}
