//! Texts of headers, queries and cookies.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::COOKIE;
use percent_encoding::percent_decode;

/// The lines of a header as one text. Bytes that are not UTF-8 become U+FFFD.
pub(super) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    let mut lines = headers.get_all(name).iter();
    let mut text = String::from_utf8_lossy(lines.next()?.as_bytes());
    // HTTP/2 sends cookies in several lines.
    let separator = if name.eq_ignore_ascii_case(COOKIE.as_str()) {
        "; "
    } else {
        ", "
    };
    for line in lines {
        let text = text.to_mut();
        text.push_str(separator);
        text.push_str(&String::from_utf8_lossy(line.as_bytes()));
    }
    Some(text)
}

/// The first parameter of a query with this name.
pub(super) fn query<'q>(query: &'q str, name: &str) -> Option<Cow<'q, str>> {
    let mut pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        is_form(key, name).then(|| form(value))
    })
}

/// Whether a text in the form of a query is this name.
fn is_form(text: &str, name: &str) -> bool {
    let mut rest = name.as_bytes();
    let mut pieces = text.split('+');
    let first = pieces.next().unwrap_or_default();
    strip_decoded(&mut rest, first)
        && pieces.all(|piece| {
            let space = rest.strip_prefix(b" ");
            rest = space.unwrap_or_default();
            space.is_some() && strip_decoded(&mut rest, piece)
        })
        && rest.is_empty()
}

/// Takes a decoded text off the start of another. Returns whether it begins with it.
fn strip_decoded(rest: &mut &[u8], text: &str) -> bool {
    percent_decode(text.as_bytes()).all(|byte| rest.split_off_first() == Some(&byte))
}

/// Decodes a text in the form of a query.
fn form(text: &str) -> Cow<'_, str> {
    if !text.contains('+') {
        return lossy(percent_decode(text.as_bytes()).into());
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8_lossy();
    Cow::Owned(decoded.into_owned())
}

fn lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// The first cookie with this name.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    let lines = headers.get_all(COOKIE).iter();
    let mut pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (key, value) = pair.split_at_checked(equals)?;
        if !percent_decode(key.trim_ascii()).eq(name.bytes()) {
            return None;
        }
        let value = value.strip_prefix(b"=")?.trim_ascii();
        let quoted = value.strip_prefix(b"\"");
        let inside = quoted.and_then(|value| value.strip_suffix(b"\""));
        Some(lossy(percent_decode(inside.unwrap_or(value)).into()))
    })
}
