//! Any path, query and headers: each fact is read, a path has one text however it is escaped, and
//! a query is read as forms are.
#![no_main]

use http::header::{COOKIE, HOST};
use http::{HeaderMap, HeaderValue, Method, Uri};
use libfuzzer_sys::fuzz_target;
use percent_encoding::percent_decode_str;
use tollgate_http::{Ambiguous, PathForm, RequestFacts};

/// The most parameters of a query that are read.
const MOST_PARAMETERS: usize = 256;

/// What the segments of a path stand for.
fn segments(path: &str) -> Vec<Vec<u8>> {
    let decode = |segment| percent_decode_str(segment).collect();
    path.split('/').map(decode).collect()
}

fn check_path(path: &str) {
    let decoded = PathForm::Decoded.of(path);
    assert_eq!(segments(&decoded), segments(path));
    assert_eq!(PathForm::Decoded.of(&decoded), decoded);
    assert_eq!(PathForm::AsSent.of(path), path);
    // With an escape for each byte it is the same.
    let escaped: Vec<String> = segments(path)
        .iter()
        .map(|segment| segment.iter().map(|byte| format!("%{byte:02x}")).collect())
        .collect();
    assert_eq!(PathForm::Decoded.of(&escaped.join("/")), decoded);
    let normalized = PathForm::Normalized.of(path);
    if path != "*" {
        assert!(normalized.starts_with('/') && !normalized.contains("//"));
        let mut names = normalized.split('/');
        assert!(
            names.all(|name| name != "." && name != ".."),
            "{normalized}"
        );
    }
}

fuzz_target!(|input: (&str, &str, &str, Vec<&[u8]>)| {
    let (path, query, name, lines) = input;
    check_path(path);
    let mut headers = HeaderMap::new();
    for value in lines
        .iter()
        .filter_map(|line| HeaderValue::from_bytes(line).ok())
    {
        headers.append(HOST, value.clone());
        headers.append(COOKIE, value);
    }
    let uri = format!("/{path}?{query}")
        .parse()
        .unwrap_or_else(|_| Uri::default());
    let method = Method::GET;
    let facts = RequestFacts::of(&method, &uri, &headers).with_path(path);
    let _ = (facts.path(), facts.cookie(name));
    // A header that was sent is there.
    assert_eq!(facts.header("cookie") != Ok(None), !headers.is_empty());
    assert_eq!(facts.host() != Ok(None), !headers.is_empty());
    let form = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let mut values: Vec<_> = form
        .filter(|(key, _)| key.as_ref() == name)
        .map(|(_, value)| value)
        .collect();
    values.dedup();
    let sent = uri.query().unwrap_or_default().split('&');
    let sent = sent.filter(|parameter| !parameter.is_empty()).count();
    let expected = match values.len() {
        // Later parameters are not read, and may have another value.
        _ if sent > MOST_PARAMETERS => Err(Ambiguous),
        0 | 1 => Ok(values.pop()),
        _ => Err(Ambiguous),
    };
    // A name that is not UTF-8 in the query has no name here.
    if !name.contains('\u{fffd}') {
        assert_eq!(facts.query(name), expected);
    }
    let pair = format!("{name}={query}");
    if let (true, Ok(value)) = (is_token(name), HeaderValue::from_str(&pair)) {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, value);
        let facts = RequestFacts::of(&method, &uri, &headers);
        assert_ne!(facts.cookie(name), Ok(None));
    }
});

/// Whether a text is the same when it is decoded, and has no end of a cookie.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
