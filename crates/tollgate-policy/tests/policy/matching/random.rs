//! Random conditions and requests from a small alphabet, so that matches and near misses are
//! common.

use std::net::IpAddr;

use tollgate_policy::when::{Condition, Pattern, Test, When};
use tollgate_policy::{FactKind, FactName, FactValue, Facts};

/// Numbers that are the same in each run (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    /// Up to `most` of the texts, each after `before`.
    fn joined(&mut self, most: usize, before: &str, texts: &[&str]) -> String {
        let count = self.below(most + 1);
        (0..count)
            .map(|_| format!("{before}{}", self.pick(texts)))
            .collect()
    }
}

const FACTS: [&str; 8] = [
    "method",
    "path",
    "path",
    "host",
    "client-ip",
    "header:x-key",
    "query:q",
    "user",
];

/// A random text of a test of this fact. Some of them are errors.
fn pattern(random: &mut Random, fact: &FactName) -> Option<Pattern> {
    match fact.kind() {
        FactKind::Path => {
            let parts = ["a", "b", "*", "{x}", "{y}", "**", "a*", "*b", "ab", "é"];
            let text = random.joined(4, "/", &parts);
            let text = if text.is_empty() { "/".into() } else { text };
            match random.below(12) {
                0 => Pattern::prefix(fact, &text),
                1 => Pattern::suffix(fact, random.pick(&["a", "/b", "b/a", "b"])),
                2 => Pattern::glob(fact, random.pick(&["/a*b", "/*/b", "*a*", "/a*"])),
                3 => Pattern::equal(fact, "//a/b/"),
                _ => Pattern::parse(fact, &text),
            }
        }
        FactKind::ClientIp => {
            let networks = [
                "10.0.0.0/8",
                "10.1.0.0/16",
                "10.1.2.0/24",
                "10.1.2.3",
                "10.1.2.128/25",
                "0.0.0.0/0",
                "::ffff:10.1.2.3",
                "::/0",
                "2001:db8::/32",
                "2001:db8::1",
                "2001:db8:8000::/33",
                "11.0.0.0/8",
                "::ffff:10.0.0.0/104",
                "64:ff9b::10.1.0.0/112",
            ];
            Pattern::parse(fact, random.pick(&networks))
        }
        FactKind::Host => {
            let hosts = [
                "a.b", "*.b", "A.*", "*a.b", "b", "*", "*.a.b", "a*b", "c.A.b", "::1",
            ];
            Pattern::parse(fact, random.pick(&hosts))
        }
        FactKind::Method => Pattern::parse(fact, random.pick(&["GET", "POST", "P*", "*T"])),
        _ => {
            let text = random.joined(4, "", &["a", "b", "*", "é", r"\*", "7"]);
            match random.below(8) {
                0 => Pattern::equal(fact, &text),
                1 => Pattern::prefix(fact, random.pick(&["a", "ab", "", "*", "é"])),
                2 => Pattern::suffix(fact, random.pick(&["a", "ab", "", "*", "é"])),
                3 => Pattern::network(random.pick(&["10.1.0.0/16", "10.1.2.3"])),
                _ => Pattern::parse(fact, &text),
            }
        }
    }
    .ok()
}

fn condition(random: &mut Random) -> Condition {
    let fact = FactName::new(random.pick(&FACTS));
    let test = match random.below(10) {
        0 => Test::Present,
        1 => Test::Absent,
        _ => {
            let count = [1, 1, 1, 2, 3][random.below(5)];
            let patterns = (0..count).filter_map(|_| pattern(random, &fact));
            Test::OneOf(patterns.collect())
        }
    };
    Condition { fact, test }
}

/// Random conditions with alternatives and exceptions up to this depth.
pub(crate) fn when(random: &mut Random, depth: usize) -> When {
    let all = (0..[0, 1, 1, 2, 3][random.below(5)])
        .map(|_| condition(random))
        .collect();
    let mut any = Vec::new();
    let mut not = None;
    if depth > 0 && random.one_in(4) {
        any = (0..=random.below(3))
            .map(|_| when(random, depth - 1))
            .collect();
    }
    if depth > 0 && random.one_in(5) {
        not = Some(Box::new(when(random, depth - 1)));
    }
    When { all, any, not }
}

/// A request, whose values are of all kinds.
#[derive(Debug)]
pub(crate) struct Request(Vec<(FactName, FactValue<'static>)>);

impl Facts for Request {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }
}

pub(crate) fn request(random: &mut Random) -> Request {
    let mut facts = Vec::new();
    for name in [
        "method",
        "path",
        "host",
        "client-ip",
        "header:x-key",
        "query:q",
        "user",
    ] {
        if random.one_in(5) {
            continue;
        }
        let fact = FactName::new(name);
        let value = match fact.kind() {
            FactKind::Path => {
                let mut path = random.joined(5, "/", &["a", "b", "ab", "aab", "c", "é", ""]);
                path.push_str(random.pick(&["", "", "", "/", "?b", "?/a"]));
                FactValue::from(path)
            }
            FactKind::ClientIp => {
                let addresses = [
                    "10.1.2.3",
                    "10.1.2.200",
                    "10.1.9.9",
                    "10.9.9.9",
                    "11.0.0.1",
                    "9.255.255.255",
                    "::ffff:10.1.2.3",
                    "64:ff9b::10.1.2.3",
                    "2001:db8::1",
                    "2001:db8:9000::1",
                    "2001:db9::1",
                    "::1",
                    "x",
                ];
                let text = random.pick(&addresses);
                let address = text.parse::<IpAddr>().ok().filter(|_| random.one_in(2));
                address.map_or(FactValue::from(text), FactValue::from)
            }
            FactKind::Host => random
                .pick(&[
                    "a.b", "A.b:80", "c.a.b.", "b", "ca.b", "[::1]:80", "xa.B", "a.c", "",
                ])
                .into(),
            FactKind::Method => random.pick(&["GET", "POST", "PUT", "get"]).into(),
            _ => match random.below(8) {
                0 => FactValue::from(7),
                1 => FactValue::from(IpAddr::from([10, 1, 2, 3])),
                2 => "10.1.2.3".into(),
                _ => random.joined(4, "", &["a", "b", "é", "*", "7"]).into(),
            },
        };
        facts.push((fact, value));
    }
    Request(facts)
}
