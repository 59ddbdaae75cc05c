//! Headers that are as long as they can be.

use crate::{ip, lines, trusting};

/// Many short lines, and lines with a megabyte of one text.
fn hostile() -> impl Iterator<Item = Vec<Vec<u8>>> {
    let repeated = [
        "1.1.1.1",
        "10.0.0.9,",
        "10.0.0.9, ",
        "for=10.0.0.9,",
        ",",
        ";",
        "\"",
        "\\",
        "\\\"",
        "=",
        "for=\"",
        "for=\"\\",
        " ",
        "[",
        ":",
        "x",
        "for=1.1.1.1;",
    ];
    let long = repeated.map(|text| vec![text.repeat(1_000_000 / text.len()).into_bytes()]);
    let many = repeated.map(|text| vec![text.as_bytes().to_vec(); 10_000]);
    long.into_iter().chain(many)
}

#[test]
fn a_long_header_does_not_hide_what_a_proxy_appended() {
    for (name, by_proxy) in [
        ("x-forwarded-for", "192.0.2.7"),
        ("forwarded", "for=192.0.2.7;host=\"a,b\""),
    ] {
        let addresses = match name {
            "forwarded" => trusting().forwarded(),
            _ => trusting().x_forwarded_for(),
        };
        for mut sent in hostile() {
            let start = String::from_utf8_lossy(&sent[0][..sent[0].len().min(20)]).into_owned();
            // Whatever it is, it has an answer.
            let _ = addresses.of(ip("10.0.0.1"), &lines(name, &sent));
            assert_eq!(
                addresses.of(ip("192.0.2.1"), &lines(name, &sent)),
                ip("192.0.2.1")
            );
            let mut joined = sent.clone();
            let last = joined.last_mut().unwrap();
            last.extend(b", ");
            last.extend(by_proxy.as_bytes());
            sent.push(by_proxy.into());
            for sent in [sent, joined] {
                let found = addresses.of(ip("10.0.0.1"), &lines(name, sent));
                assert_eq!(found, ip("192.0.2.7"), "{name} {start}");
            }
        }
    }
}

#[test]
fn at_most_64_entries_are_looked_at() {
    for hops in [None, Some(255)] {
        let mut addresses = trusting().x_forwarded_for();
        if let Some(hops) = hops {
            addresses = addresses.trusted_hops(hops);
        }
        // Entries are 10.0.0.1 to 10.0.3.232 from the right.
        let entries = (1..=1000_u32).rev();
        let entries = entries.map(|it| std::net::Ipv4Addr::from_bits(0x0A00_0000 + it).to_string());
        let sent: Vec<_> = entries.collect();
        let found = addresses.of(ip("10.0.0.255"), &lines("x-forwarded-for", &sent));
        assert_eq!(found, ip("10.0.0.64"));
        let found = addresses.of(
            ip("10.0.0.255"),
            &lines("x-forwarded-for", [sent.join(", ")]),
        );
        assert_eq!(found, ip("10.0.0.64"));
    }
}

#[test]
fn an_entry_has_at_most_1024_bytes() {
    let spaces = |n| " ".repeat(n);
    let addresses = trusting().x_forwarded_for();
    let of = |line: String| addresses.of(ip("10.0.0.1"), &lines("x-forwarded-for", [line]));
    for before in ["", "1.1.1.1,"] {
        let fits = format!("{before}{}192.0.2.7", spaces(1024 - 9));
        assert_eq!(of(fits), ip("192.0.2.7"));
        let long = format!("{before}{}192.0.2.7", spaces(1024 - 9 + 1));
        assert_eq!(of(long), ip("10.0.0.1"));
    }
}
