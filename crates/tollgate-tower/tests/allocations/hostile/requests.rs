//! Requests that no client should send.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use crate::random::Random;

/// A request with these lines of headers.
pub(crate) fn with_lines(lines: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Request<()> {
    let mut request = Request::new(());
    append(request.headers_mut(), lines);
    request
}

fn append(headers: &mut HeaderMap, lines: impl IntoIterator<Item = (&'static str, Vec<u8>)>) {
    for (name, value) in lines {
        let name = HeaderName::from_static(name);
        headers.append(
            name,
            HeaderValue::from_bytes(&value).expect("a header can have it"),
        );
    }
}

fn with_uri(uri: &str) -> Request<()> {
    let uri: Uri = uri.parse().expect(uri);
    Request::get(uri).body(()).unwrap()
}

/// Headers that the layers of the tests read.
const NAMES: [&str; 9] = [
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "x-api-key",
    "x-weight",
    "cookie",
    "host",
    "user-agent",
    "content-type",
];

/// Values of these headers that are wrong in many ways.
const VALUES: [&[u8]; 44] = [
    b"",
    b" ",
    b",",
    b",,,,,,,,",
    b"\t,\t;",
    b"\xff\xfe\xfd",
    b"for=\xc3\x28",
    b"1.2.3.4",
    b"1.2.3.4:99999",
    b"1.2.3.4.5.6.7.8",
    b"01.02.03.04",
    b"256.256.256.256",
    b"::",
    b"::ffff:1.2.3.4",
    b"[::1",
    b"[::1]]",
    b"[::1]:-1",
    b"[[::1]]",
    b"fe80::1%eth0",
    b"1:2:3:4:5:6:7:8:9",
    b"for=",
    b"for=;",
    b"for=\"",
    b"for=\"\\",
    b"for=\"[2001:db8::1",
    b"for=\"[2001:db8::1]\";for=1.2.3.4",
    b"for=_hidden, for=unknown",
    b"FOR=1.2.3.4;by=\"a,b;c\\\"d\"",
    b"for=\"a\\\\\\\",b\", for=2.3.4.5",
    b"by=x;for=1.2.3.4;for=2.3.4.5",
    b"=;=;=",
    b"for for for",
    b"-1",
    b"1e9",
    b"99999999999999999999999999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"0x10",
    b"NaN",
    b"+7",
    b"a=b; a=c; =; ;; a",
    b"session",
    b"application/grpc",
    b"\"\"\"\"",
];

/// The path and query that a request may have.
fn uris() -> Vec<String> {
    let long = |part: &str| part.repeat(60_000 / part.len());
    let mut uris: Vec<String> = [
        "/",
        "/%",
        "/%%%",
        "/%0",
        "/%zz",
        "/%00",
        "/%ff%fe",
        "/%C3%28",
        "/%2e%2e/%2E%2e/",
        "/..",
        "/../../../..",
        "/./././",
        "//",
        "///a///",
        "/a;b=c/;/..;/",
        "/a%2fb%5cc",
        "/%252e",
        "/?",
        "/??",
        "/?&&&=",
        "/?a",
        "/?=a",
        "/?tenant",
        "/?tenant=%",
        "/?tenant=%ff",
        "/?tenant=a&tenant=b",
        "*",
        "http://a/",
        "http://user:pw@host:1/",
        "http://[::1]:80/",
        "http://a.b.c.d.e.f./",
    ]
    .map(str::to_owned)
    .into();
    for part in [
        "a", "/", "/..", "/.", "%2e", "/%2e%2e", "%", "%2", "%ff", ";a=b", "/a/../b",
    ] {
        uris.push(format!("/{}", long(part)));
        uris.push(format!("/search/{}", long(part)));
    }
    for part in ["&", "=", "%", "tenant=a&", "a=b&", "%74enant=1&"] {
        uris.push(format!("/?{}", long(part)));
    }
    uris.push(format!("http://{}/", "a.".repeat(25_000)));
    uris.push(format!("http://{}@b/", "a".repeat(50_000)));
    uris
}

/// All requests, with a name for each. These headers are those that the layer reads.
pub(crate) fn all(names: &[&'static str]) -> Vec<(String, Request<()>)> {
    let mut all = Vec::new();
    for &name in names {
        for value in VALUES {
            let shown = String::from_utf8_lossy(value);
            all.push((
                format!("{name}: {shown}"),
                with_lines([(name, value.to_vec())]),
            ));
            let lines = vec![(name, value.to_vec()); 3];
            all.push((format!("3x {name}: {shown}"), with_lines(lines)));
        }
        // A megabyte, in one line and in 10 000.
        for part in [
            &b"a"[..],
            b",",
            b"\"",
            b"\\",
            b"\"\\",
            b"for=\"a,",
            b";",
            b"for=1.2.3.4,",
            b"10.0.0.1, ",
            b"[",
            b"::",
            b"a=b; ",
            b"9",
            b"\xff",
        ] {
            let shown = String::from_utf8_lossy(part);
            let value = part.repeat(1_000_000 / part.len());
            all.push((
                format!("1 MB of {shown} in {name}"),
                with_lines([(name, value)]),
            ));
            let line = part.repeat(100 / part.len() + 1);
            let lines = vec![(name, line); 10_000];
            all.push((
                format!("10 000 lines of {shown} in {name}"),
                with_lines(lines),
            ));
        }
    }
    let mut request = Request::new(());
    for number in 0..10_000 {
        let name = HeaderName::try_from(format!("x-{number}")).unwrap();
        request
            .headers_mut()
            .append(name, HeaderValue::from(number));
    }
    all.push(("10 000 headers".to_owned(), request));
    for uri in uris() {
        let start: String = uri.chars().take(60).collect();
        all.push((format!("{start} ({} bytes)", uri.len()), with_uri(&uri)));
    }
    for method in ["A", "get", "!#$%&'*+-.^_`|~", &"M".repeat(10_000)] {
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
        all.push((format!("method {:.20}", method), request));
    }
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = "example.com:443".parse().unwrap();
    all.push(("CONNECT".to_owned(), request));
    all
}

/// A request of random pieces of the others.
pub(crate) fn random(random: &mut Random) -> Request<()> {
    let mut lines = Vec::new();
    for _ in 0..random.below(6) {
        let mut value = Vec::new();
        for _ in 0..random.below(5) {
            value.extend_from_slice(random.pick(&VALUES));
            value.extend_from_slice(random.pick(&[&b","[..], b";", b" ", b"\"", b"=", b""]));
        }
        for byte in &mut value {
            if random.below(40) == 0 {
                *byte = u8::try_from(random.below(256)).unwrap();
            }
            if *byte == 127 || (*byte < 32 && *byte != b'\t') {
                *byte = b'?';
            }
        }
        lines.push((random.pick(&NAMES), value));
    }
    with_lines(lines)
}
