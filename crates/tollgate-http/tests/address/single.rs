//! `X-Real-IP` and other headers with one address.

use http::HeaderName;
use tollgate_http::ClientAddress;

use crate::{ip, lines, trusting};

#[test]
fn one_line_with_an_address_from_a_trusted_peer_is_the_client() {
    let addresses = trusting().x_real_ip();
    for (peer, sent, client) in [
        ("10.0.0.1", &["192.0.2.7"][..], "192.0.2.7"),
        ("10.0.0.1", &["192.0.2.7:80"], "192.0.2.7"),
        ("10.0.0.1", &["2001:db8::7"], "2001:db8::7"),
        ("::ffff:10.0.0.1", &["::ffff:192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", &["10.0.0.9"], "10.0.0.9"),
        // The peer, if it is not trusted, or the header is not one address.
        ("203.0.113.9", &["192.0.2.7"], "203.0.113.9"),
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &[""], "10.0.0.1"),
        ("10.0.0.1", &["unknown"], "10.0.0.1"),
        ("10.0.0.1", &["192.0.2.7, 192.0.2.8"], "10.0.0.1"),
        ("10.0.0.1", &["192.0.2.7", "192.0.2.8"], "10.0.0.1"),
        ("10.0.0.1", &["192.0.2.7", "192.0.2.7"], "10.0.0.1"),
    ] {
        let found = addresses.of(ip(peer), &lines("x-real-ip", sent));
        assert_eq!(found, ip(client), "{peer} {sent:?}");
    }
}

#[test]
fn any_header_can_have_the_address() {
    let name = HeaderName::from_static("cf-connecting-ip");
    let addresses = ClientAddress::peer().trusted_hops(1).header(name);
    let headers = lines("cf-connecting-ip", ["192.0.2.7"]);
    assert_eq!(addresses.of(ip("10.0.0.1"), &headers), ip("192.0.2.7"));
    let addresses = addresses.trusted_hops(0);
    assert_eq!(addresses.of(ip("10.0.0.1"), &headers), ip("10.0.0.1"));
}
