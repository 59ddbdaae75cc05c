//! `Forwarded` (RFC 7239).

use crate::{ip, lines, trusting};

const NAME: &str = "forwarded";

/// The client of a request that the proxy 10.0.0.1 forwards.
fn of(sent: &[&str]) -> std::net::IpAddr {
    trusting()
        .forwarded()
        .of(ip("10.0.0.1"), &lines(NAME, sent))
}

#[test]
fn the_first_untrusted_address_from_the_right_is_the_client() {
    for (sent, client) in [
        (&["for=192.0.2.7"][..], "192.0.2.7"),
        (&["for=1.1.1.1, for=192.0.2.7"], "192.0.2.7"),
        (&["for=1.1.1.1,for=192.0.2.7,for=10.0.0.2"], "192.0.2.7"),
        (
            &["for=1.1.1.1", "for=192.0.2.7", "for=10.0.0.2"],
            "192.0.2.7",
        ),
        (&["for=10.0.0.3, for=10.0.0.2"], "10.0.0.3"),
        // RFC 7239 has these forms.
        (&["FOR=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::17"),
        (&["For=192.0.2.60;Proto=http;By=203.0.113.43"], "192.0.2.60"),
        (&["for=192.0.2.43, for=198.51.100.17"], "198.51.100.17"),
        (
            &["by=203.0.113.43; for=\"192.0.2.60:47011\" ;proto=https"],
            "192.0.2.60",
        ),
        (&["proto=https;for=192.0.2.60;;"], "192.0.2.60"),
        // Ports may be hidden, and quotes and brackets may be missing.
        (&["for=\"192.0.2.60:_x\""], "192.0.2.60"),
        (&["for=192.0.2.60:80"], "192.0.2.60"),
        (&["for=[2001:db8::7]:80"], "2001:db8::7"),
        (&["for=\"2001:db8::7\""], "2001:db8::7"),
        (&["for=\"::ffff:192.0.2.7\""], "192.0.2.7"),
        // Commas, semicolons and quotes in quotes.
        (
            &["for=192.0.2.7;host=\"a,b;for=1.1.1.1\\\",for=2.2.2.2\""],
            "192.0.2.7",
        ),
        (&["for=1.1.1.1, host=\"\\\\\";for=192.0.2.7"], "192.0.2.7"),
        (&["for=\"192.0.2\\.7\""], "192.0.2.7"),
    ] {
        assert_eq!(of(sent), ip(client), "{sent:?}");
    }
}

#[test]
fn an_untrusted_peer_is_the_client() {
    let headers = lines(NAME, ["for=192.0.2.7"]);
    let found = trusting().forwarded().of(ip("203.0.113.9"), &headers);
    assert_eq!(found, ip("203.0.113.9"));
}

#[test]
fn an_element_that_is_malformed_or_has_no_address_ends_the_search() {
    for bad in [
        "",
        "for",
        "for=",
        "for=;proto=https",
        "for=\"\"",
        "for=unknown",
        "for=_hidden",
        "for=\"_SEVKISEK\"",
        "proto=https;by=192.0.2.7",
        "for=192.0.2.7;for=192.0.2.8",
        "for=192.0.2.7;For=192.0.2.7",
        "for=192.0.2.7;proto",
        "for=192.0.2.7;proto=",
        "for=192.0.2.7 proto=https",
        "for =192.0.2.7",
        "for= 192.0.2.7",
        "=192.0.2.7",
        "for=192.0.2.7\"",
        "for=\"192.0.2.7\"x",
        "for=\"192.0.2.7\\\"",
        "for=\"192.0.2.7;proto=https",
        "192.0.2.7",
        "xfor=192.0.2.7",
    ] {
        assert_eq!(of(&["for=1.1.1.1", bad]), ip("10.0.0.1"), "{bad}");
        assert_eq!(
            of(&["for=1.1.1.1", bad, "for=10.0.0.2"]),
            ip("10.0.0.2"),
            "{bad}"
        );
    }
}

/// A client sends anything, and its proxy appends to the same line.
#[test]
fn what_a_client_sent_does_not_change_how_a_proxy_is_read() {
    for sent in [
        "for=\"",
        "for=\"1.1.1.1",
        "for=1.1.1.1;host=\"\\",
        "for=1.1.1.1;host=\"\\\\\\\"",
        "\"\"\"",
        ",,,",
        "for=\"x\\",
    ] {
        for by_proxy in [
            "for=192.0.2.7",
            "for=\"192.0.2.7:80\";host=\"a, \\\"b\"",
            "host=\"\\\\\";for=192.0.2.7",
        ] {
            let line = format!("{sent}, {by_proxy}");
            assert_eq!(of(&[&line]), ip("192.0.2.7"), "{line}");
            assert_eq!(of(&[sent, by_proxy]), ip("192.0.2.7"), "{line}");
            let line = format!("{line}, for=10.0.0.2");
            assert_eq!(of(&[&line]), ip("192.0.2.7"), "{line}");
        }
    }
}
