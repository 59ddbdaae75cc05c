//! Random paths, queries and cookies.

use http::{HeaderMap, HeaderValue, Method, Uri};
use percent_encoding::{percent_decode_str, percent_encode_byte};
use proptest::prelude::*;
use tollgate_http::{Ambiguous, PathForm, RequestFacts};

/// Bytes that are special somewhere, and others.
fn byte() -> impl Strategy<Value = u8> {
    let special = prop::sample::select(&b"/.;%\\?ab2Ff \x00\xc3\xa9\xff"[..]);
    prop_oneof![5 => special, 1 => any::<u8>()]
}

/// A segment, and for each byte whether it has an escape, and one with digits of lower case.
fn segment() -> impl Strategy<Value = Vec<(u8, bool, bool)>> {
    prop::collection::vec((byte(), any::<bool>(), any::<bool>()), 0..8)
}

/// Writes a segment, as a client can send it. What can't be in a URI always has an escape.
fn write(segment: &[(u8, bool, bool)]) -> String {
    let mut text = String::new();
    for (byte, escaped, lower) in segment {
        let plain = byte.is_ascii_graphic() && !b"/?#%".contains(byte);
        match (escaped | !plain, lower) {
            (false, _) => text.push(char::from(*byte)),
            (true, true) => text += &percent_encode_byte(*byte).to_ascii_lowercase(),
            (true, false) => text += percent_encode_byte(*byte),
        }
    }
    text
}

/// The bytes of each segment.
fn segments(path: &str) -> Vec<Vec<u8>> {
    let decode = |segment| percent_decode_str(segment).collect();
    path.split('/').map(decode).collect()
}

/// Resolves a path with a stack of its segments.
fn resolve(path: &str) -> String {
    let mut stack: Vec<String> = Vec::new();
    let mut ends = String::new();
    for segment in path[1..].split('/') {
        let name = segment.split(';').next().unwrap();
        let name = PathForm::Decoded.of(name).into_owned();
        ends = if ["", ".", ".."].contains(&&*name) {
            "/"
        } else {
            ""
        }
        .into();
        match &*name {
            "" | "." => {}
            ".." => drop(stack.pop()),
            _ => stack.push(name),
        }
    }
    let text: String = stack.iter().map(|it| format!("/{it}")).collect();
    text + &ends
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_decoded_path_has_the_same_segments_however_it_was_sent(
        path in prop::collection::vec(segment(), 1..4),
        other in prop::collection::vec((any::<bool>(), any::<bool>()), 32),
    ) {
        let write = |path: &[Vec<_>]| -> String {
            path.iter().map(|it| format!("/{}", write(it))).collect()
        };
        let sent = write(&path);
        let decoded = PathForm::Decoded.of(&sent);
        // Escapes make no difference.
        let mut path = path;
        for (it, other) in path.iter_mut().flatten().zip(other) {
            (it.1, it.2) = other;
        }
        let again = write(&path);
        prop_assert_eq!(&PathForm::Decoded.of(&again), &decoded, "{}", sent);
        // What the segments stand for is the same, and so is decoding it again.
        prop_assert_eq!(segments(&decoded), segments(&sent), "{}", sent);
        prop_assert_eq!(&PathForm::Decoded.of(&decoded), &decoded);
        // What is left of escapes can't be decoded.
        prop_assert!(!decoded.contains(['\\', '?']) && !decoded.contains(char::is_control));
        for after in decoded.split('%').skip(1) {
            let byte = u8::from_str_radix(&after[..2], 16).unwrap();
            prop_assert_eq!(&after[..2], &format!("{byte:02X}"));
            let stays = b"/\\?%\x7f".contains(&byte) || !(32..128).contains(&byte);
            prop_assert!(stays, "{} {}", sent, decoded);
        }
    }

    #[test]
    fn a_normalized_path_is_that_of_the_model(path in prop::collection::vec(segment(), 1..6)) {
        let sent: String = path.iter().map(|it| format!("/{}", write(it))).collect();
        prop_assert_eq!(PathForm::Normalized.of(&sent), resolve(&sent), "{}", sent);
    }

    #[test]
    fn dots_slashes_and_parameters_are_those_of_the_model(
        sent in "(/|/\\.|/\\.\\.|/%2e|/%2E\\.|/a|/b;|;c|;|%2f){1,12}",
    ) {
        let sent = format!("/{sent}");
        prop_assert_eq!(PathForm::Normalized.of(&sent), resolve(&sent), "{}", sent);
    }

    #[test]
    fn a_query_is_read_as_forms_are(query in "[ab%=&+26 é\\[#]{0,24}", name in "[ab& +é%]{0,2}") {
        let query: String = query.replace([' ', '#'], "%");
        let Ok(uri) = format!("/?{query}").parse::<Uri>() else { return Ok(()) };
        let (method, headers) = (Method::GET, HeaderMap::new());
        let mut expected: Vec<_> = form_urlencoded::parse(query.as_bytes())
            .filter(|(key, _)| *key == *name)
            .map(|(_, value)| value)
            .collect();
        expected.dedup();
        let expected = match expected.len() {
            0 | 1 => Ok(expected.pop()),
            _ => Err(Ambiguous),
        };
        let facts = RequestFacts::of(&method, &uri, &headers);
        prop_assert_eq!(facts.query(&name), expected, "{} {}", query, name);
    }

    #[test]
    fn a_cookie_is_found_however_it_was_sent(
        value in prop::collection::vec((byte(), any::<bool>(), any::<bool>()), 0..8),
        before in "[ab=;\" ]{0,10}",
        quotes in any::<bool>(),
        in_two_lines in any::<bool>(),
    ) {
        // Cookies that end in themselves, or are this one, or begin with quotes.
        let special = |it: &(u8, bool, bool)| b";\" ".contains(&it.0);
        let escaped: Vec<_> = value.iter().map(|it| (it.0, it.1 | special(it), it.2)).collect();
        let text = match quotes {
            true => format!("\"{}\"", write(&escaped)),
            false => write(&escaped),
        };
        let mut headers = HeaderMap::new();
        let mut add = |text: String| headers.append("cookie", HeaderValue::from_str(&text).unwrap());
        if in_two_lines {
            add(before);
            add(format!("name={text}"));
        } else {
            add(format!("{before}; name={text};after=x"));
        }
        let bytes: Vec<u8> = value.iter().map(|it| it.0).collect();
        let (method, uri) = (Method::GET, Uri::from_static("/"));
        let found = RequestFacts::of(&method, &uri, &headers).cookie("name");
        let expected = String::from_utf8_lossy(&bytes).into_owned();
        prop_assert_eq!(found, Ok(Some(expected.into())));
    }
}
