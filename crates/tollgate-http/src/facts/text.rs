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
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        is_form(key, name).then(|| form(value))
    })
}

/// Whether a text in the form of a query is this one.
fn is_form(text: &str, name: &str) -> bool {
    let bytes = percent_decode(text.as_bytes());
    // An escaped `+` is no space.
    if text.contains('+') {
        return form(text) == name;
    }
    bytes.eq(name.bytes())
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
