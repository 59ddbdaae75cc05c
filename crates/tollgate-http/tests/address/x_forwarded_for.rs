//! `X-Forwarded-For`, and what all lists have in common.

use http::HeaderMap;
use tollgate_http::ClientAddress;

use crate::{ip, lines, trusting};

const NAME: &str = "x-forwarded-for";

#[test]
fn the_first_untrusted_address_from_the_right_is_the_client() {
    let addresses = trusting().x_forwarded_for();
    for (peer, sent, client) in [
        // An untrusted peer is the client.
        ("203.0.113.9", &["1.1.1.1"][..], "203.0.113.9"),
        ("203.0.113.9", &[], "203.0.113.9"),
        ("2001:db8::9", &["10.0.0.1"], "2001:db8::9"),
        // A trusted one that says nothing, too.
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &["192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", &["1.1.1.1, 192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", &["1.1.1.1,\t192.0.2.7 "], "192.0.2.7"),
        (
            "10.0.0.1",
            &["1.1.1.1, 192.0.2.7, 10.0.0.3, 10.0.0.2"],
            "192.0.2.7",
        ),
        (
            "2001:db8:aaaa::1",
            &["1.1.1.1, 2001:db8::7, 10.0.0.2"],
            "2001:db8::7",
        ),
        // An address of a proxy that the client forged is left of an untrusted one.
        ("10.0.0.1", &["10.0.0.9, 192.0.2.7"], "192.0.2.7"),
        // Several lines are one list.
        ("10.0.0.1", &["1.1.1.1", "192.0.2.7"], "192.0.2.7"),
        (
            "10.0.0.1",
            &["1.1.1.1", "192.0.2.7, 10.0.0.3", "10.0.0.2"],
            "192.0.2.7",
        ),
        (
            "10.0.0.1",
            &["1.1.1.1, 192.0.2.7", "10.0.0.3, 10.0.0.2"],
            "192.0.2.7",
        ),
        // If all are trusted, the leftmost one.
        ("10.0.0.1", &["10.0.0.4, 10.0.0.3", "10.0.0.2"], "10.0.0.4"),
    ] {
        let found = addresses.of(ip(peer), &lines(NAME, sent));
        assert_eq!(found, ip(client), "{peer} {sent:?}");
    }
}

#[test]
fn an_entry_that_is_no_address_ends_the_search() {
    let addresses = trusting().x_forwarded_for();
    for bad in [
        "unknown",
        "_hidden",
        "_",
        "",
        " ",
        "-",
        "localhost",
        "192.0.2",
        "192.0.2.256",
        "192.0.2.07",
        "192.0.2.7.1",
        "192.0.2.7/32",
        "192.0.2.7:",
        "192.0.2.7:x",
        "192.0.2.7:65536",
        "192.0.2.7:+80",
        "192.0.2.7:80:80",
        "192.0.2.7 192.0.2.8",
        "[192.0.2.7]",
        "[192.0.2.7]:80",
        "[2001:db8::7",
        "2001:db8::7]",
        "[2001:db8::7]80",
        "[2001:db8::7]:",
        "[2001:db8::7]:_",
        "[2001:db8::7]:_a:b",
        "2001:db8::7::1",
        "fe80::1%eth0",
        "\"192.0.2.7\"",
        "for=192.0.2.7",
    ] {
        // The proxy 10.0.0.2 reports something that is no address: all that can be said is that the
        // request came through it.
        let list = format!("1.1.1.1, {bad}, 10.0.0.2");
        let found = addresses.of(ip("10.0.0.1"), &lines(NAME, [list]));
        assert_eq!(found, ip("10.0.0.2"), "{bad:?}");
        let found = addresses.of(ip("10.0.0.1"), &lines(NAME, ["1.1.1.1", bad]));
        assert_eq!(found, ip("10.0.0.1"), "{bad:?}");
    }
    let bytes = lines(NAME, [&b"1.1.1.1, \xff\xfe"[..]]);
    assert_eq!(addresses.of(ip("10.0.0.1"), &bytes), ip("10.0.0.1"));
    // Left of the client it does not matter.
    let found = addresses.of(ip("10.0.0.1"), &lines(NAME, ["?, \"\\, ,,192.0.2.7"]));
    assert_eq!(found, ip("192.0.2.7"));
}

#[test]
fn entries_have_ports_and_brackets_or_not() {
    let addresses = trusting().x_forwarded_for();
    for (entry, client) in [
        ("192.0.2.7:80", "192.0.2.7"),
        ("192.0.2.7:0", "192.0.2.7"),
        ("192.0.2.7:_p.1-x_", "192.0.2.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("2001:DB8:0:0::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("[2001:db8::7]:_port", "2001:db8::7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("[::ffff:c000:207]:443", "192.0.2.7"),
        ("64:ff9b::192.0.2.7", "192.0.2.7"),
    ] {
        let found = addresses.of(ip("10.0.0.1"), &lines(NAME, [entry]));
        assert_eq!(found, ip(client), "{entry}");
    }
}

#[test]
fn an_address_of_version_4_in_version_6_is_one_of_version_4_everywhere() {
    let addresses = trusting().x_forwarded_for();
    let headers = lines(NAME, ["1.1.1.1, 192.0.2.7, ::ffff:10.0.0.2"]);
    assert_eq!(
        addresses.of(ip("::ffff:10.0.0.1"), &headers),
        ip("192.0.2.7")
    );
    assert_eq!(
        addresses.of(ip("::ffff:192.0.2.9"), &headers),
        ip("192.0.2.9")
    );
    assert_eq!(
        ClientAddress::peer().of(ip("::ffff:192.0.2.9"), &headers),
        ip("192.0.2.9")
    );
    assert_eq!(
        addresses.of(ip("64:ff9b::192.0.2.9"), &headers),
        ip("192.0.2.9")
    );
    for network in [
        "::ffff:10.0.0.0/104",
        "::ffff:a00:1",
        "::ffff:10.0.0.1/128",
        "64:ff9b::10.0.0.0/104",
    ] {
        let addresses = ClientAddress::peer().trust(network).unwrap();
        assert!(addresses.trusts(ip("10.0.0.1")), "{network}");
        assert!(addresses.trusts(ip("::ffff:10.0.0.1")), "{network}");
        assert!(addresses.trusts(ip("64:ff9b::10.0.0.1")), "{network}");
        assert!(!addresses.trusts(ip("11.0.0.1")), "{network}");
    }
    // All of version 6 is not all of version 4.
    let addresses = ClientAddress::peer().trust("::/0").unwrap();
    assert!(addresses.trusts(ip("2001:db8::1")));
    assert!(!addresses.trusts(ip("10.0.0.1")));
    assert!(!addresses.trusts(ip("::ffff:10.0.0.1")));
}

#[test]
fn nothing_is_trusted_unless_said() {
    let headers = lines(NAME, ["192.0.2.7"]);
    for addresses in [
        ClientAddress::default(),
        ClientAddress::peer(),
        ClientAddress::peer().x_forwarded_for(),
        ClientAddress::peer().forwarded(),
        ClientAddress::peer().x_real_ip(),
        ClientAddress::peer().x_forwarded_for().trust_networks([]),
        ClientAddress::peer().x_forwarded_for().trusted_hops(0),
        // Trusted, but no header is chosen, or another one.
        trusting(),
        trusting().forwarded(),
        trusting().x_real_ip(),
        // An empty list of networks from a configuration is no wildcard.
        ClientAddress::peer()
            .x_forwarded_for()
            .trust_networks([])
            .trusted_hops(3),
    ] {
        assert_eq!(
            addresses.of(ip("10.0.0.1"), &headers),
            ip("10.0.0.1"),
            "{addresses:?}"
        );
    }
}

#[test]
fn hops_are_counted_from_the_right() {
    let headers = lines(NAME, ["1.1.1.1, 2.2.2.2", "3.3.3.3"]);
    let of = |hops| {
        let addresses = ClientAddress::peer().x_forwarded_for().trusted_hops(hops);
        addresses.of(ip("4.4.4.4"), &headers)
    };
    assert_eq!(of(0), ip("4.4.4.4"));
    assert_eq!(of(1), ip("3.3.3.3"));
    assert_eq!(of(2), ip("2.2.2.2"));
    assert_eq!(of(3), ip("1.1.1.1"));
    // Fewer proxies than expected.
    assert_eq!(of(4), ip("1.1.1.1"));
    assert_eq!(of(u8::MAX), ip("1.1.1.1"));
    let none = ClientAddress::peer().x_forwarded_for().trusted_hops(2);
    assert_eq!(none.of(ip("4.4.4.4"), &HeaderMap::new()), ip("4.4.4.4"));
    let bad = lines(NAME, ["1.1.1.1, unknown, 3.3.3.3"]);
    assert_eq!(none.of(ip("4.4.4.4"), &bad), ip("3.3.3.3"));
}

#[test]
fn networks_and_hops_only_make_each_other_stricter() {
    // The client 10.9.9.9 is in the trusted network, and forges an entry.
    let headers = lines(NAME, ["1.1.1.1, 10.9.9.9, 10.0.0.2"]);
    let of = |addresses: ClientAddress| addresses.x_forwarded_for().of(ip("10.0.0.1"), &headers);
    assert_eq!(of(trusting()), ip("1.1.1.1"));
    assert_eq!(of(trusting().trusted_hops(2)), ip("10.9.9.9"));
    assert_eq!(of(trusting().trusted_hops(1)), ip("10.0.0.2"));
    // An untrusted address ends the search before the hops are used up.
    let headers = lines(NAME, ["1.1.1.1, 192.0.2.7, 10.0.0.2"]);
    let strict = trusting().trusted_hops(9).x_forwarded_for();
    assert_eq!(strict.of(ip("10.0.0.1"), &headers), ip("192.0.2.7"));
    assert_eq!(strict.of(ip("192.0.2.1"), &headers), ip("192.0.2.1"));
}

#[test]
fn networks_are_found_among_many() {
    let networks = (0..=255).flat_map(|byte| {
        let inner = format!("10.{byte}.128.0/20");
        let outer = format!("10.{byte}.128.0/17");
        let six = format!("2001:db8:{byte:x}::/48");
        [inner, six, outer].map(|it| it.parse().unwrap())
    });
    let addresses = ClientAddress::peer().trust_networks(networks);
    let addresses = addresses.trust("10.7.128.1").unwrap();
    for byte in 0..=255 {
        for (host, expected) in [("127.255", false), ("128.0", true), ("144.0", true)] {
            let address = ip(&format!("10.{byte}.{host}"));
            assert_eq!(addresses.trusts(address), expected, "{address}");
        }
        assert!(addresses.trusts(ip(&format!("10.{byte}.255.255"))));
        assert!(addresses.trusts(ip(&format!("2001:db8:{byte:x}:ffff::1"))));
        assert!(!addresses.trusts(ip(&format!("2001:db9:{byte:x}::1"))));
    }
    assert!(!addresses.trusts(ip("9.255.255.255")) && !addresses.trusts(ip("11.0.0.0")));
}

#[test]
fn a_wrong_network_is_an_error_that_says_what_is_allowed() {
    for (text, message) in [
        (
            "",
            "trust ``: must be an address such as `10.0.0.7` or `2001:db8::1`, or a network such \
              as `10.0.0.0/8` or `2001:db8::/32`",
        ),
        ("10.0.0.0/33", "trust `10.0.0.0/33`: must be an address"),
        ("proxy", "trust `proxy`: must be an address"),
        ("10.0.0.1:80", "trust `10.0.0.1:80`: must be an address"),
        (
            "10.0.0.1/8",
            "trust `10.0.0.1/8`: the address has bits beyond the network; write \
                        `10.0.0.0/8`",
        ),
        (
            "2001:db8::1/32",
            "trust `2001:db8::1/32`: the address has bits beyond the network; write \
                            `2001:db8::/32`",
        ),
    ] {
        let error = ClientAddress::peer().trust(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
