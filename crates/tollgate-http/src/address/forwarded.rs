//! Elements of `Forwarded` (RFC 7239).

use std::net::IpAddr;

use super::node;

/// The longest text of an address, with its port.
const MAX_NODE: usize = 128;

/// The last comma outside of quotes.
///
/// It is found from the right. So what a client sent, such as a quote that does not end, can't
/// change how the text that a proxy appended is read.
pub(super) fn last_comma(text: &[u8]) -> Option<usize> {
    let mut quoted = false;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b'"' if !is_escaped(text, at) => quoted = !quoted,
            b',' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether an odd number of backslashes comes before a byte.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    slashes.count() % 2 == 1
}

/// Reads the address of `for` in one element: pairs such as `for=192.0.2.7;proto=https`.
///
/// Names are compared without case. Space is allowed around a `;`. An element with a malformed
/// pair, or without exactly one `for`, has no address.
pub(super) fn parse(element: &[u8]) -> Option<IpAddr> {
    let mut rest = element.trim_ascii();
    let mut found = None;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(b";") {
            rest = after.trim_ascii_start();
            continue;
        }
        let equals = rest.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (rest.get(..equals)?, rest.get(equals.saturating_add(1)..)?);
        if name.is_empty() || !name.iter().copied().all(is_token) {
            return None;
        }
        let (value, after) = split_value(value)?;
        if name.eq_ignore_ascii_case(b"for") {
            if found.is_some() {
                return None;
            }
            found = Some(value.address()?);
        }
        rest = after.trim_ascii_start();
        if !(rest.is_empty() || rest.starts_with(b";")) {
            return None;
        }
    }
    found
}

enum Text<'t> {
    Plain(&'t [u8]),
    /// What is between the quotes.
    Quoted(&'t [u8]),
}

impl Text<'_> {
    fn address(&self) -> Option<IpAddr> {
        let quoted = match self {
            Self::Plain(text) => return node::parse(text),
            Self::Quoted(text) => *text,
        };
        if !quoted.contains(&b'\\') {
            return node::parse(quoted);
        }
        let mut buffer = [0; MAX_NODE];
        let mut places = buffer.iter_mut();
        let mut bytes = quoted.iter();
        let mut len: usize = 0;
        while let Some(byte) = bytes.next() {
            let byte = if *byte == b'\\' { bytes.next()? } else { byte };
            *places.next()? = *byte;
            len = len.saturating_add(1);
        }
        node::parse(buffer.get(..len)?)
    }
}

/// Splits a value from what follows it.
fn split_value(text: &[u8]) -> Option<(Text<'_>, &[u8])> {
    if let Some(inside) = text.strip_prefix(b"\"") {
        let mut escaped = false;
        let end = inside.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        let (value, after) = inside.split_at_checked(end)?;
        return Some((Text::Quoted(value), after.strip_prefix(b"\"")?));
    }
    // Brackets and colons belong into quotes, but some proxies write them without.
    let allowed = |byte: u8| is_token(byte) || b"[]:/".contains(&byte);
    let end = text.iter().position(|byte| !allowed(*byte));
    let (value, after) = text.split_at_checked(end.unwrap_or(text.len()))?;
    (!value.is_empty()).then_some((Text::Plain(value), after))
}

/// Whether a byte can be in a token (RFC 9110).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
