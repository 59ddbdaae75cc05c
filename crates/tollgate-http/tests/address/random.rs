//! Random headers, compared with a model.

use std::net::IpAddr;

use proptest::prelude::*;
use tollgate_http::ClientAddress;

use crate::{ip, lines, trusting};

/// An entry of a list, its address, and the same as an element of `Forwarded`.
type Entry = (&'static str, Option<&'static str>);

const ENTRIES: [Entry; 13] = [
    ("10.0.0.1", Some("10.0.0.1")),
    ("10.255.0.2:80", Some("10.255.0.2")),
    ("::ffff:10.0.0.3", Some("10.0.0.3")),
    ("2001:db8:aaaa::4", Some("2001:db8:aaaa::4")),
    ("192.0.2.5", Some("192.0.2.5")),
    ("2001:db8::6", Some("2001:db8::6")),
    ("[2001:db8::7]:_x", Some("2001:db8::7")),
    ("::ffff:192.0.2.8", Some("192.0.2.8")),
    ("64:ff9b::192.0.2.9", Some("192.0.2.9")),
    ("unknown", None),
    ("", None),
    ("_x", None),
    ("1.2.3", None),
];

/// Whether the test's settings trust an address.
fn is_trusted(address: &str) -> bool {
    address.starts_with("10.") || address.starts_with("2001:db8:aaaa:")
}

/// The client, found in a list of all addresses from the left to the peer.
fn model(entries: &[Entry], peer: &str, hops: Option<u8>, by_network: bool) -> IpAddr {
    let mut path: Vec<Option<&str>> = entries.iter().map(|(_, address)| *address).collect();
    path.push(Some(peer));
    let trusted = |address: &str, before: usize| {
        let by_hops = hops.map(|hops| before < usize::from(hops));
        by_hops.unwrap_or(by_network) && (!by_network || is_trusted(address))
    };
    let mut client = path.len() - 1;
    while client > 0
        && trusted(path[client].unwrap(), path.len() - 1 - client)
        && path[client - 1].is_some()
    {
        client -= 1;
    }
    ip(path[client].unwrap())
}

/// The entries in lines, of which each ends after an entry for which this is true.
fn split(entries: &[String], ends: &[bool]) -> Vec<String> {
    let mut lines: Vec<Vec<&str>> = Vec::new();
    let mut starts = true;
    for (entry, ends) in entries
        .iter()
        .zip(ends.iter().chain(std::iter::repeat(&false)))
    {
        if starts {
            lines.push(Vec::new());
        }
        lines.last_mut().unwrap().push(entry);
        starts = *ends;
    }
    lines.iter().map(|line| line.join(", ")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_client_is_that_of_the_model(
        entries in prop::collection::vec(prop::sample::select(&ENTRIES[..]), 0..8),
        ends in prop::collection::vec(any::<bool>(), 8),
        peer in prop::sample::select(&["10.0.0.9", "192.0.2.9", "2001:db8:aaaa::9"][..]),
        hops in prop::option::of(0_u8..6),
        by_network in any::<bool>(),
    ) {
        let mut addresses = if by_network { trusting() } else { ClientAddress::peer() };
        if let Some(hops) = hops {
            addresses = addresses.trusted_hops(hops);
        }
        let expected = model(&entries, peer, hops, by_network);
        let plain: Vec<_> = entries.iter().map(|(text, _)| (*text).to_owned()).collect();
        let headers = lines("x-forwarded-for", split(&plain, &ends));
        let found = addresses.clone().x_forwarded_for().of(ip(peer), &headers);
        prop_assert_eq!(found, expected);
        let elements: Vec<_> = plain
            .iter()
            .map(|text| format!("proto=\"a,\\\"\";For=\"{text}\""))
            .collect();
        let headers = lines("forwarded", split(&elements, &ends));
        prop_assert_eq!(addresses.forwarded().of(ip(peer), &headers), expected);
    }

    /// Whatever a client sends, it stands left of what its proxy appends.
    #[test]
    fn nothing_left_of_an_untrusted_address_is_returned(
        sent in prop::collection::vec(r#"[ -~&&[^\x7f]]{0,40}"#, 0..5),
        joins in any::<bool>(),
        proxies in 0_usize..4,
    ) {
        let client = ip("192.0.2.7");
        for (name, of) in [("x-forwarded-for", ""), ("forwarded", "for=")] {
            let mut by_proxies = vec![format!("{of}192.0.2.7")];
            by_proxies.extend((0..proxies).map(|it| format!("{of}10.0.0.{it}")));
            let mut all = sent.clone();
            match all.last_mut() {
                Some(last) if joins => *last += &format!(", {}", by_proxies.join(", ")),
                _ => all.push(by_proxies.join(",")),
            }
            let addresses = match name {
                "forwarded" => trusting().forwarded(),
                _ => trusting().x_forwarded_for(),
            };
            prop_assert_eq!(addresses.of(ip("10.0.0.9"), &lines(name, all)), client);
        }
    }
}
