//! Random policies and requests.

use std::fmt::Write;
use std::time::Duration;

use crate::guide::lines::{End, Pairs};
use crate::random::Random;

const LIMITS: [&str; 10] = [
    "3/s",
    "5/10s burst 2",
    "gcra 2/s burst 3",
    "leaky-meter 7/2s burst 4",
    "leaky-queue 2/s burst 3",
    "fixed-window 4/2s",
    "fixed-window 3/5s first-hit",
    "sliding-window 4/2s",
    "intervals 2/3s burst 4",
    "concurrency 3",
];
const PATHS: [&str; 6] = ["/a", "/a/**", "/a/{x}", "/b/*/c", "/**/c", "/b*/{x}"];
const BAN_OF_FAILURES: &str =
    "ban = { after = 3, of = \"failures\", for = \"4s\", within = \"2000001us\" }\n";
/// The limit of the requests that may fail before [`BAN_OF_FAILURES`].
pub(crate) const ATTEMPTS: &str = "fixed-window 3/2000001us first-hit";
const KEYS: [&str; 6] = [
    "\"user\"",
    "\"client-ip\"",
    "\"header:x-k\"",
    "\"header.x-k\"",
    "[\"user\", \"tier\"]",
    "",
];

fn one<'a>(random: &mut Random, list: &[&'a str]) -> &'a str {
    list[random.below(list.len() as u64) as usize]
}

/// Returns the text of a policy in memory, with one to six rules and some lists.
pub(crate) fn policy(random: &mut Random) -> String {
    policy_on(random, "")
}

/// Returns the text of a policy with the table of a server, which has the limits of some rules.
pub(crate) fn policy_on_server(random: &mut Random) -> String {
    let server = one(
        random,
        &[
            "store = { redis = \"redis://10.0.0.5\", fallback = \"closed\" }\n",
            "[store]\nredis = { env = \"REDIS_URL\" }\nbudget = \"20ms\"\n",
        ],
    );
    policy_on(random, server)
}

fn policy_on(random: &mut Random, server: &str) -> String {
    let mut text = String::new();
    if random.one_in(2) {
        text += "apply = \"all\"\n";
    }
    if random.one_in(4) {
        text += "client = { network = { v4 = 16, v6 = 48 } }\n";
    }
    text += server;
    for list in ["deny", "allow"] {
        if random.one_in(3) {
            let _ = writeln!(text, "[[{list}]]\nname = \"{list}\"");
            let _ = writeln!(
                text,
                "when = {{ {}, {} }}",
                condition(random),
                address(random)
            );
            if list == "deny" && random.one_in(2) {
                text += "status = 410\n";
            }
        }
    }
    let rules = 1 + random.below(6);
    for number in 0..rules {
        let after: Vec<_> = (number + 1..rules).map(|n| format!("r{n}")).collect();
        let start = text.len();
        rule(random, number, &after, &mut text);
        if !server.is_empty() {
            let needs_fallback = !server.contains("fallback");
            store(random, start, needs_fallback, &mut text);
        }
    }
    text
}

fn rule(random: &mut Random, number: u64, after: &[String], text: &mut String) {
    let start = text.len();
    let is_limit = number > 0 && random.one_in(8);
    let table = if is_limit { "limit" } else { "rule" };
    let _ = writeln!(text, "[[{table}]]\nname = \"r{number}\"");
    match random.below(5) {
        _ if is_limit => {}
        0 => {}
        1 if number > 0 => *text += "when = \"never\"\n",
        2 => {
            let _ = writeln!(
                text,
                "when = {{ {}, {} }}",
                condition(random),
                address(random)
            );
        }
        _ => {
            let _ = writeln!(text, "when = {{ {} }}", condition(random));
        }
    }
    // A key keeps its permits under another plan, which the model does not know: each key has one.
    let has_plans = random.one_in(5);
    let key = match has_plans {
        true => "[\"user\", \"tier\"]",
        false => one(random, &KEYS),
    };
    if !key.is_empty() {
        let _ = writeln!(text, "key = {key}");
        let missing = one(random, &["deny", "skip", "shared"]);
        let _ = writeln!(text, "missing = \"{missing}\"");
        let repeated = one(random, &["deny", "first", "last"]);
        let _ = writeln!(text, "repeated = \"{repeated}\"");
        if random.one_in(4) {
            *text += "network = { v4 = 24 }\n";
        }
    }
    *text += "capacity = 1000\n";
    let limit = match random.one_in(8) {
        true => one(random, &["unlimited", "0"]),
        false => one(random, &LIMITS),
    };
    let is_fixed = ["unlimited", "0"].contains(&limit);
    let is_concurrency = limit.starts_with("concurrency");
    if has_plans {
        let other = one(random, &LIMITS[..9]);
        let rate = if is_concurrency { "2/s" } else { limit };
        let _ = writeln!(
            text,
            "plan = {{ by = \"tier\", free = \"{rate}\", pro = \"{other}\"{} }}",
            if random.one_in(2) {
                ", default = \"free\""
            } else {
                ""
            }
        );
        if random.one_in(3) {
            let tier = one(random, &["free", "none"]);
            let own = one(random, &["2/3s", "2/3s", "unlimited", "0"]);
            let _ = writeln!(
                text,
                "override = [{{ key = [\"u1\", \"{tier}\"], limit = \"{own}\" }}]"
            );
        }
    } else if !is_fixed && random.one_in(4) {
        let second = one(random, &["6/2s", "fixed-window 7/4s"]);
        let _ = writeln!(text, "limit = [\"{limit}\", \"{second}\"]");
    } else {
        let _ = writeln!(text, "limit = \"{limit}\"");
        if key == "\"user\"" && !is_concurrency && random.one_in(3) {
            let own = one(random, &["2/3s", "2/3s", "unlimited", "0"]);
            let _ = writeln!(text, "override = [{{ key = \"u1\", limit = \"{own}\" }}]");
        }
    }
    if !is_concurrency {
        match random.below(6) {
            0 => *text += "cost = 2\n",
            1 => {
                *text += one(
                    random,
                    &["cost = \"header:x-n\"\n", "cost = \"header.x-n\"\n"],
                )
            }
            2 => {
                *text +=
                    "cost = { estimate = \"header:x-n\", min = 0, max = 3, settle = \"used\" }\n"
            }
            _ => {
                *text += one(
                    random,
                    &["", "count = \"failures\"\n", "count = \"successes\"\n"],
                )
            }
        }
        let of_rule = &text[start..];
        let has = |part: &str| of_rule.contains(part);
        // Requests without a key are not banned, and what is explained of an override is short.
        let of_failures = !has("override") && (is_fixed || random.one_in(2));
        let can_ban = !key.is_empty() && !has("shared") && (of_failures || !is_fixed);
        if can_ban && random.one_in(3) {
            // No sum of the times that pass is as long as the period in which denials count.
            *text += match of_failures {
                true => BAN_OF_FAILURES,
                false => "ban = { after = 3, for = \"4s\", within = \"2000001us\" }\n",
            };
        }
    }
    if !is_limit && !after.is_empty() && random.one_in(2) {
        let also = &after[random.below(after.len() as u64) as usize];
        let _ = writeln!(text, "also = [\"{also}\"]");
    }
    if random.one_in(6) {
        *text += "shadow = true\n";
    }
    // Each rule has one of its own, so that it tells the rules apart.
    if !random.one_in(4) {
        let _ = writeln!(text, "status = {}", 500 + number);
    }
}

/// Adds where the rule that begins at `start` has its limits. The server of the tests knows one
/// rate alone.
fn store(random: &mut Random, start: usize, needs_fallback: bool, text: &mut String) {
    let of_rule = text.get(start..).unwrap_or_default();
    let has_rate = ["3/s", "5/10s burst 2"].iter().any(|rate| {
        of_rule.contains(&format!("limit = \"{rate}\"\n")) && !of_rule.contains("override")
    });
    if !has_rate || random.one_in(4) {
        *text += "store = \"memory\"\n";
        return;
    }
    if random.one_in(4) {
        *text += "store = \"redis\"\n";
    }
    if needs_fallback || random.one_in(4) {
        *text += "fallback = \"closed\"\n";
    }
}

fn condition(random: &mut Random) -> String {
    let simple = match random.below(9) {
        0 => "method = [\"GET\", \"PUT\"]".to_owned(),
        1 => "header.x-k = \"k*\"".to_owned(),
        2 => "user = false".to_owned(),
        3 => "host = \"*.example.com\"".to_owned(),
        5 => "\"header.x-k\" = \"k1\"".to_owned(),
        6 => "\"header:x-k\" = true".to_owned(),
        4 => "header = { x-k = { suffix = \"1\" } }".to_owned(),
        _ => format!("path = \"{}\"", one(random, &PATHS)),
    };
    match random.below(6) {
        0 => format!("not = {{ {simple} }}"),
        1 => format!("any = [{{ {simple} }}, {{ tier = \"pro\" }}]"),
        _ => simple,
    }
}

fn address(random: &mut Random) -> &'static str {
    one(
        random,
        &[
            "client-ip = \"10.0.0.0/24\"",
            "client-ip = [\"10.0.0.1\", \"2001:db8::/32\"]",
        ],
    )
}

/// Returns a request. Some facts are often absent.
pub(crate) fn request(random: &mut Random) -> Pairs {
    let mut facts = Pairs::new();
    let mut add = |random: &mut Random, name: &str, values: &[&str]| {
        if !random.one_in(4) {
            facts.push((name.into(), one(random, values).into()));
            // A plan, a resolver and a path need one value: the model has a limit for each plan.
            let is_single = ["method", "path", "user", "tier"].contains(&name);
            if !is_single && random.one_in(8) {
                facts.push((name.into(), one(random, values).into()));
            }
        }
    };
    add(random, "method", &["GET", "PUT", "POST"]);
    add(
        random,
        "path",
        &["/a", "/a/b", "/a/b/c", "//b/x/c/", "/b1/y", "/c", "/"],
    );
    add(
        random,
        "host",
        &["x.example.com", "X.Example.Com:80", "example.com"],
    );
    add(
        random,
        "client-ip",
        &[
            "10.0.0.1",
            "10.0.0.2",
            "10.0.1.1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
        ],
    );
    add(random, "header:x-k", &["k1", "k2", "l1"]);
    add(random, "header:x-n", &["0", "1", "2", "5"]);
    add(random, "user", &["u1", "u2"]);
    add(random, "tier", &["free", "pro", "none"]);
    facts
}

/// Returns the end of a request.
pub(crate) fn end(random: &mut Random) -> End {
    let used = random.below(5).to_string();
    End {
        fails: random.one_in(2),
        answer: if random.one_in(3) {
            vec![("used".into(), used)]
        } else {
            Pairs::new()
        },
    }
}

/// Returns how long nothing happens. Often nothing.
pub(crate) fn idle(random: &mut Random) -> Duration {
    match random.below(4) {
        0 => Duration::from_millis(random.below(3000)),
        1 => Duration::from_millis(500 * random.below(5)),
        _ => Duration::ZERO,
    }
}
