//! Clients that forge headers.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use tollgate_http::ClientAddress;

use crate::{ip, lines, trusting};

/// 10 000 different addresses.
fn forged() -> impl Iterator<Item = String> {
    (0..10_000_u32).map(|it| Ipv4Addr::from_bits(0x0102_0304 + it * 7919).to_string())
}

#[test]
fn ten_thousand_forged_headers_from_an_untrusted_peer_are_one_address() {
    let settings: [(&str, ClientAddress); 3] = [
        ("x-forwarded-for", trusting().x_forwarded_for()),
        ("forwarded", trusting().forwarded()),
        ("x-real-ip", trusting().x_real_ip()),
    ];
    for (name, addresses) in settings {
        let sent = forged().map(|address| match name {
            "forwarded" => format!("for={address}"),
            _ => address,
        });
        let found: HashSet<_> = sent
            .map(|value| addresses.of(ip("203.0.113.9"), &lines(name, [value])))
            .collect();
        assert_eq!(found, HashSet::from([ip("203.0.113.9")]), "{name}");
    }
}

#[test]
fn ten_thousand_forged_headers_through_a_trusted_proxy_are_one_address() {
    let addresses = trusting().x_forwarded_for();
    let found: HashSet<_> = forged()
        .flat_map(|address| {
            let appended = format!("{address}, 203.0.113.9");
            let one = lines("x-forwarded-for", [appended]);
            let two = lines("x-forwarded-for", [&address, "203.0.113.9"]);
            [one, two].map(|headers| addresses.of(ip("10.0.0.1"), &headers))
        })
        .collect();
    assert_eq!(found, HashSet::from([ip("203.0.113.9")]));
}
