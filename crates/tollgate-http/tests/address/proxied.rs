//! Addresses of the PROXY protocol.

use tollgate_http::ClientAddress;
use tollgate_http::proxy::{self, Progress, ProxyHeader};

use crate::{ip, lines, trusting};

fn header(bytes: &[u8]) -> ProxyHeader {
    match proxy::read(bytes) {
        Ok(Progress::Done(header)) => header,
        other => panic!("{other:?}"),
    }
}

/// 192.0.2.7 connected to 10.0.0.1.
fn tcp4() -> ProxyHeader {
    header(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\xa0\0\x01\xbb")
}

#[test]
fn the_header_counts_from_a_trusted_peer_only() {
    let header_of_client = tcp4();
    assert_eq!(
        trusting().proxied(ip("10.0.0.1"), &header_of_client),
        ip("192.0.2.7")
    );
    assert_eq!(
        trusting().proxied(ip("::ffff:10.0.0.1"), &header_of_client),
        ip("192.0.2.7")
    );
    assert_eq!(
        trusting().proxied(ip("203.0.113.9"), &header_of_client),
        ip("203.0.113.9")
    );
    let nothing = ClientAddress::default();
    assert_eq!(
        nothing.proxied(ip("10.0.0.1"), &header_of_client),
        ip("10.0.0.1")
    );
    let one = ClientAddress::peer().trusted_hops(1);
    assert_eq!(
        one.proxied(ip("203.0.113.9"), &header_of_client),
        ip("192.0.2.7")
    );
}

#[test]
fn without_an_address_it_is_the_peer() {
    let local = header(b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0");
    assert_eq!(
        trusting().proxied(ip("::ffff:10.0.0.1"), &local),
        ip("10.0.0.1")
    );
}

#[test]
fn a_mapped_address_is_one_of_version_4() {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24".to_vec();
    for address in ["::ffff:192.0.2.7", "2001:db8::1"] {
        bytes.extend(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
    }
    bytes.extend([0xA0, 0, 1, 0xBB]);
    assert_eq!(
        trusting().proxied(ip("10.0.0.1"), &header(&bytes)),
        ip("192.0.2.7")
    );
}

#[test]
fn requests_of_the_connection_can_have_passed_through_more_proxies() {
    let addresses = trusting().x_forwarded_for();
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    bytes.extend([10, 0, 0, 2, 10, 0, 0, 1, 0xA0, 0, 1, 0xBB]);
    // A balancer of connections, before it a proxy of requests, and before that the client.
    let peer = addresses.proxied(ip("10.0.0.3"), &header(&bytes));
    assert_eq!(peer, ip("10.0.0.2"));
    let headers = lines("x-forwarded-for", ["1.1.1.1, 192.0.2.7"]);
    assert_eq!(addresses.of(peer, &headers), ip("192.0.2.7"));
    // The client itself at the balancer: its header is forged.
    let peer = addresses.proxied(ip("10.0.0.3"), &tcp4());
    assert_eq!(addresses.of(peer, &headers), ip("192.0.2.7"));
    assert_eq!(peer, ip("192.0.2.7"));
}
