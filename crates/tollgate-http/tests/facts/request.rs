//! Methods, hosts, headers, queries and cookies.

use std::borrow::Cow;

use http::{Method, Request};
use tollgate_http::{Ambiguous, RequestFacts};

use crate::request;

#[test]
fn all_constructors_give_the_same_facts() {
    let request = request("http://example.com/a?b=c", &[("cookie", b"d=e")]);
    let (parts, ()) = request.clone().into_parts();
    for facts in [
        RequestFacts::new(&request),
        RequestFacts::of_parts(&parts),
        RequestFacts::of(request.method(), request.uri(), request.headers()),
    ] {
        assert_eq!((facts.method(), &*facts.path()), (&Method::GET, "/a"));
        assert_eq!(facts.host(), Ok(Some("example.com".into())));
        assert_eq!(facts.query("b"), Ok(Some("c".into())));
        assert_eq!(facts.cookie("d"), Ok(Some("e".into())));
        assert_eq!(facts.client_address(), None);
    }
}

#[test]
fn a_mapped_client_address_is_one_of_version_4() {
    let request = request("/", &[]);
    let facts = RequestFacts::new(&request).client_ip("::ffff:192.0.2.7".parse().unwrap());
    assert_eq!(facts.client_address(), "192.0.2.7".parse().ok());
}

#[test]
fn the_host_is_that_of_the_uri_or_of_the_header() {
    for (uri, headers, host) in [
        ("/", &[][..], None),
        ("/", &[("host", &b"example.com"[..])], Some("example.com")),
        (
            "/",
            &[("host", b"example.com:8080")],
            Some("example.com:8080"),
        ),
        (
            "/",
            &[("host", b"[2001:db8::1]:80")],
            Some("[2001:db8::1]:80"),
        ),
        ("/", &[("host", b"")], Some("")),
        (
            "/",
            &[("host", b"a.com"), ("host", b"a.com")],
            Some("a.com"),
        ),
        ("/", &[("host", b"caf\xc3\xa9.com")], Some("café.com")),
        // It is there, though it is no host.
        ("/", &[("host", b"\xff")], Some("")),
        ("http://a.com/", &[], Some("a.com")),
        ("http://a.com:81/", &[("host", b"b.com")], Some("a.com:81")),
        ("http://user:pw@a.com:81/", &[], Some("a.com:81")),
        ("a.com:443", &[], Some("a.com:443")),
    ] {
        let request = request(uri, headers);
        assert_eq!(
            RequestFacts::new(&request).host(),
            Ok(host.map(Cow::from)),
            "{uri} {headers:?}"
        );
    }
    let several = request("/", &[("host", b"a.com"), ("host", b"b.com")]);
    assert_eq!(RequestFacts::new(&several).host(), Err(Ambiguous));
    assert_eq!(RequestFacts::new(&several).header("host"), Err(Ambiguous));
}

#[test]
fn a_header_is_all_its_lines() {
    let headers: &[(&str, &[u8])] = &[
        ("x-one", b"1"),
        ("via", b"a"),
        ("x-empty", b""),
        ("via", b""),
        ("via", b"b, c"),
        ("x-many", b"a"),
        ("x-same", b"a"),
        ("x-many", b"b"),
        ("x-same", b"a"),
        ("x-latin", b"caf\xe9"),
        ("x-utf", "café".as_bytes()),
        ("cookie", b"a=b"),
        ("cookie", b"c=d"),
    ];
    let request = request("http://example.com/", headers);
    let facts = RequestFacts::new(&request);
    assert_eq!(facts.header("x-many"), Err(Ambiguous));
    let header = |name| facts.header(name).unwrap();
    assert!(matches!(header("x-same"), Some(Cow::Borrowed("a"))));
    assert!(matches!(header("x-one"), Some(Cow::Borrowed("1"))));
    assert!(matches!(header("X-One"), Some(Cow::Borrowed("1"))));
    assert_eq!(header("Via").as_deref(), Some("a, , b, c"));
    // An empty header is there, and so is one that is not UTF-8.
    assert_eq!(header("x-empty").as_deref(), Some(""));
    assert_eq!(header("x-latin").as_deref(), Some("caf\u{fffd}"));
    assert!(matches!(header("x-utf"), Some(Cow::Borrowed("café"))));
    assert_eq!(header("Cookie").as_deref(), Some("a=b; c=d"));
    assert_eq!(header("x-none"), None);
    assert_eq!(header("no header"), None);
    assert_eq!(header(""), None);
    // HTTP/2 has no header of the host.
    assert_eq!(header("Host").as_deref(), Some("example.com"));
}

#[test]
fn the_header_of_the_host_is_as_it_was_sent() {
    let request = request("http://a.com/", &[("host", b"b.com")]);
    assert_eq!(
        RequestFacts::new(&request).header("host"),
        Ok(Some("b.com".into()))
    );
}

#[test]
fn a_parameter_of_the_query_is_decoded() {
    let uri = "/?a=1&a=%31&u=1&u=2&b=x+y%2Bz%20&c&&=d&e=f=g&%68=i&j+k=l&m%2Bn=o&p=%ff%zz%&caf%C3%A9=q&r%3Ds=t";
    let request = request(uri, &[]);
    let facts = RequestFacts::new(&request);
    for (name, value) in [
        ("a", Some("1")),
        ("b", Some("x y+z ")),
        ("c", Some("")),
        ("", Some("d")),
        ("e", Some("f=g")),
        ("h", Some("i")),
        ("%68", None),
        ("j k", Some("l")),
        ("j+k", None),
        ("m+n", Some("o")),
        ("m n", None),
        ("p", Some("\u{fffd}%zz%")),
        ("café", Some("q")),
        ("r=s", Some("t")),
        ("r", None),
        ("A", None),
    ] {
        assert_eq!(facts.query(name), Ok(value.map(Cow::from)), "{name}");
    }
    assert!(matches!(facts.query("a"), Ok(Some(Cow::Borrowed("1")))));
    assert_eq!(facts.query("u"), Err(Ambiguous));
    let request = Request::get("/a").body(()).unwrap();
    assert_eq!(RequestFacts::new(&request).query("a"), Ok(None));
    assert_eq!(RequestFacts::new(&request).query(""), Ok(None));
}

#[test]
fn a_cookie_is_found_in_all_lines() {
    let headers: &[(&str, &[u8])] = &[
        (
            "cookie",
            b"a=1; b=2 ;c= 3;d;=e; f=\"g h\"; i=\"; j=%6b%zz; %6c=m",
        ),
        ("cookie", b"a=1; n=5=6; u=1"),
        ("cookie", b"u=2"),
        (
            "cookie",
            b"o=\xff\xc3\xa9; p=%22q%22; r=\"%20\"; s=\"\"; t=",
        ),
    ];
    let request = request("/", headers);
    let facts = RequestFacts::new(&request);
    for (name, value) in [
        ("a", Some("1")),
        ("b", Some("2")),
        ("c", Some("3")),
        ("d", None),
        ("", Some("e")),
        ("f", Some("g h")),
        ("i", Some("\"")),
        ("j", Some("k%zz")),
        ("l", Some("m")),
        ("n", Some("5=6")),
        ("o", Some("\u{fffd}é")),
        ("p", Some("\"q\"")),
        ("r", Some(" ")),
        ("s", Some("")),
        ("t", Some("")),
        ("A", None),
    ] {
        assert_eq!(facts.cookie(name), Ok(value.map(Cow::from)), "{name}");
    }
    assert!(matches!(facts.cookie("a"), Ok(Some(Cow::Borrowed("1")))));
    assert_eq!(facts.cookie("u"), Err(Ambiguous));
}
