//! Requests that are as long as they can be.

use http::{HeaderMap, HeaderValue, Method, Uri};
use tollgate_http::{Ambiguous, PathForm, RequestFacts};

#[test]
fn absurd_paths_have_each_form() {
    for (piece, decoded, normalized) in [
        ("/..", "/..", ""),
        ("/.", "/.", ""),
        ("/", "/", ""),
        ("/%2e%2E", "/..", ""),
        ("/;;;", "/;;;", ""),
        ("/a", "/a", "/a"),
        ("/%", "/%25", "/%25"),
        ("/\\", "/%5C", "/%5C"),
        ("/%f0%9f", "/%F0%9F", "/%F0%9F"),
        ("/a/../b", "/a/../b", "/b"),
    ] {
        // As a path from a router, and as the longest URI.
        for (long, is_uri) in [(1_000_000, false), (65_000, true)] {
            let times = long / piece.len();
            let path = piece.repeat(times);
            let uri: Uri = if is_uri {
                path.parse().unwrap()
            } else {
                Uri::default()
            };
            let (method, headers) = (Method::GET, HeaderMap::new());
            let mut facts = RequestFacts::of(&method, &uri, &headers);
            if !is_uri {
                facts = facts.with_path(&path);
            }
            assert_eq!(facts.path(), decoded.repeat(times), "{piece}");
            let expected = match normalized {
                "" => "/".to_owned(),
                text => text.repeat(times),
            };
            assert_eq!(
                facts.path_form(PathForm::Normalized).path(),
                expected,
                "{piece}"
            );
        }
    }
    let deep = format!("{}{}", "/a".repeat(100_000), "/..".repeat(99_999));
    assert_eq!(PathForm::Normalized.of(&deep), "/a/");
}

#[test]
fn absurd_queries_have_parameters() {
    for piece in ["&", "=", "%", "+", "a&", "%26", "x=y&", "%61=1&"] {
        let query = piece.repeat(60_000 / piece.len());
        let uri: Uri = format!("/?{query}&last=1").parse().unwrap();
        let (method, headers) = (Method::GET, HeaderMap::new());
        let facts = RequestFacts::of(&method, &uri, &headers);
        // At most 256 parameters are read.
        let is_many = piece.len() > 1 && piece.ends_with('&');
        let (last, none) = match is_many {
            true => (Err(Ambiguous), Err(Ambiguous)),
            false => (Ok(Some("1".into())), Ok(None)),
        };
        assert_eq!(facts.query("last"), last, "{piece}");
        assert_eq!(facts.query("none"), none, "{piece}");
    }
}

#[test]
fn absurd_headers_are_there() {
    let mut headers = HeaderMap::new();
    for _ in 0..10_000 {
        headers.append("x-many", HeaderValue::from_static("a"));
        headers.append("cookie", HeaderValue::from_static(";;=;%;\"=\"; "));
    }
    let long = HeaderValue::from_bytes(&vec![0xFF; 1_000_000]).unwrap();
    headers.append("x-long", long.clone());
    headers.append("cookie", long);
    headers.append("cookie", HeaderValue::from_static("last=1"));
    let (method, uri) = (Method::GET, Uri::from_static("/"));
    let facts = RequestFacts::of(&method, &uri, &headers);
    // At most 256 lines and 256 cookies are read.
    assert_eq!(facts.header("x-many"), Err(Ambiguous));
    assert_eq!(
        facts.header("x-long").map(|it| it.unwrap().chars().count()),
        Ok(1_000_000)
    );
    assert_eq!(facts.cookie("last"), Err(Ambiguous));
    assert_eq!(facts.cookie("none"), Err(Ambiguous));
    assert!(
        facts
            .header("cookie")
            .is_ok_and(|it| it.unwrap().ends_with("; last=1"))
    );
}
