//! Forms of paths.

use std::borrow::Cow;

use http::{Method, Request};
use tollgate_http::{PathForm, RequestFacts};

use crate::request;

#[test]
fn each_form_of_a_path() {
    for (sent, decoded, normalized) in [
        ("/", "/", "/"),
        ("/login", "/login", "/login"),
        ("/%6cogin", "/login", "/login"),
        ("/%6Cog%69n", "/login", "/login"),
        ("/a%20b+c", "/a b+c", "/a b+c"),
        ("/caf%c3%a9", "/café", "/café"),
        ("/%f0%9f%a6%80", "/🦀", "/🦀"),
        // What would change segments, the end, or escapes stays.
        ("/users/a%2fb", "/users/a%2Fb", "/users/a%2Fb"),
        ("/users/a%2Fb", "/users/a%2Fb", "/users/a%2Fb"),
        ("/a%5cb\\c", "/a%5Cb%5Cc", "/a%5Cb%5Cc"),
        ("/a%3fb", "/a%3Fb", "/a%3Fb"),
        ("/a%252fb", "/a%252fb", "/a%252fb"),
        ("/100%25", "/100%25", "/100%25"),
        ("/100%", "/100%25", "/100%25"),
        ("/%%32f", "/%252f", "/%252f"),
        ("/%zz%1", "/%25zz%251", "/%25zz%251"),
        // So does what can't be seen, and what is not UTF-8.
        (
            "/a%00%0ab%7f%c2%85",
            "/a%00%0Ab%7F%C2%85",
            "/a%00%0Ab%7F%C2%85",
        ),
        ("/%ff%c3(%c3%a9%e2%82", "/%FF%C3(é%E2%82", "/%FF%C3(é%E2%82"),
        ("/%c0%af", "/%C0%AF", "/%C0%AF"),
        ("/%ed%a0%80", "/%ED%A0%80", "/%ED%A0%80"),
        // Dot segments, parameters and slashes are for the normalized form.
        ("/a/../login", "/a/../login", "/login"),
        ("/a/%2e%2E/login", "/a/../login", "/login"),
        ("/a/.%2e/login", "/a/../login", "/login"),
        ("/a/..%2flogin", "/a/..%2Flogin", "/a/..%2Flogin"),
        ("/a/./login/.", "/a/./login/.", "/a/login/"),
        ("/../../login", "/../../login", "/login"),
        ("/a/b/..", "/a/b/..", "/a/"),
        ("/a/..", "/a/..", "/"),
        ("/..", "/..", "/"),
        ("/...", "/...", "/..."),
        ("/.a/..b", "/.a/..b", "/.a/..b"),
        ("//login//x/", "//login//x/", "/login/x/"),
        ("//", "//", "/"),
        ("/login;v=1", "/login;v=1", "/login"),
        ("/a;x=/../..;y/login;", "/a;x=/../..;y/login;", "/login"),
        ("/;/login", "/;/login", "/login"),
        ("/login%3bv=1", "/login;v=1", "/login;v=1"),
        ("/a%3b/%2e%2e;x/login", "/a;/..;x/login", "/login"),
    ] {
        let request = request(sent, &[]);
        let facts = RequestFacts::new(&request);
        assert_eq!(facts.path(), decoded, "{sent}");
        assert_eq!(
            facts.clone().path_form(PathForm::Normalized).path(),
            normalized,
            "{sent}"
        );
        assert_eq!(facts.clone().path_form(PathForm::AsSent).path(), sent);
    }
}

#[test]
fn a_path_that_does_not_change_is_borrowed() {
    for path in [
        "/",
        "/users/alice/",
        "/a.b/..c",
        "/a%2Fb",
        "/100%25",
        "/%FF",
        "/%00",
        "*",
        "/café/a+b;c",
    ] {
        assert!(
            matches!(PathForm::Decoded.of(path), Cow::Borrowed(_)),
            "{path}"
        );
        assert!(
            matches!(PathForm::AsSent.of(path), Cow::Borrowed(_)),
            "{path}"
        );
        if !path.contains(';') {
            assert!(
                matches!(PathForm::Normalized.of(path), Cow::Borrowed(_)),
                "{path}"
            );
        }
    }
}

#[test]
fn requests_without_a_path_have_one() {
    for (method, uri, path) in [
        (Method::OPTIONS, "*", "*"),
        (Method::CONNECT, "example.com:443", "/"),
        (Method::GET, "http://example.com", "/"),
        (Method::GET, "http://example.com?a=b", "/"),
        (Method::GET, "http://example.com/%61?b", "/a"),
    ] {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        for form in [PathForm::Decoded, PathForm::Normalized, PathForm::AsSent] {
            let expected = if form == PathForm::AsSent && uri.contains("%61") {
                "/%61"
            } else {
                path
            };
            assert_eq!(
                RequestFacts::new(&request).path_form(form).path(),
                expected,
                "{uri}"
            );
        }
    }
}

#[test]
fn a_program_can_supply_the_path_from_before_a_router_changed_it() {
    let request = request("/users/%61?page=2", &[]);
    let facts = RequestFacts::new(&request).with_path("/api//users/%61/../b?page=3");
    assert_eq!(facts.path(), "/api//users/a/../b");
    assert_eq!(
        facts.clone().path_form(PathForm::Normalized).path(),
        "/api/users/b"
    );
    assert_eq!(
        facts.clone().path_form(PathForm::AsSent).path(),
        "/api//users/%61/../b"
    );
    assert_eq!(facts.query("page"), Ok(Some("2".into())));
    // Also one that does not begin with a slash.
    let facts = facts.path_form(PathForm::Normalized);
    assert_eq!(facts.clone().with_path("a/../login").path(), "/login");
    assert_eq!(facts.with_path("").path(), "/");
}
