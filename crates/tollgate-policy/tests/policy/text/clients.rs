//! What a file says of clients, and what is wrong with it.

use tollgate_policy::file::{PolicyFile, SeenPath};
use tollgate_policy::{Policy, warnings};

const RULE: &str = "[[rule]]\nname = 'a'\nkey = 'client-ip'\nlimit = '5/s'\n";

fn read(client: &str) -> PolicyFile {
    let file = PolicyFile::from_toml(&format!("[client]\n{client}\n{RULE}"));
    file.unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn a_file_need_not_say_how_clients_are_found() {
    let file = PolicyFile::from_toml(RULE).expect("a policy");
    assert_eq!(file.client, read("").client);
    assert!(!file.client.has_address());
    assert!(!read("path = 'as-sent'").client.has_address());
    assert_eq!(read("path = 'as-sent'").client.path, Some(SeenPath::AsSent));
}

#[test]
fn an_empty_list_trusts_no_proxy() {
    let client = read("trust = []").client;
    assert!(client.has_address());
    assert_eq!((client.trust, client.header), (Some(Vec::new()), None));
}

#[test]
fn networks_are_those_of_each_rule_that_names_none() {
    let text = "client = { network = { v4 = 24, v6 = 48 } }\n\
                rule = [{ name = 'a', key = 'client-ip', limit = '5/s' },\n\
                        { name = 'b', limit = '5/s', network = { v4 = 8 } }]\n\
                limit = [{ name = 'c', limit = '5/s' }]";
    let file = PolicyFile::from_toml(text).expect("a policy");
    let bits = file.rules.iter().map(|rule| &rule.network);
    let bits: Vec<_> = bits.map(|bits| (bits.v4.value, bits.v6.value)).collect();
    assert_eq!(bits, [(24, 48), (8, 48), (24, 48)]);
    let policy = Policy::from_toml(text).expect("a policy");
    let from = |client: &'static str| policy.decide(&[("client-ip", client)]).remaining();
    assert_eq!((from("192.0.2.1"), from("192.0.2.200")), (Some(4), Some(3)));
}

#[test]
fn what_is_wrong_with_clients_is_said_with_its_place() {
    let needs = "1:1: error: client.header is missing, but a proxy that is trusted must write one, \
                 such as \"x-forwarded-for\"";
    let unread = "error: client.header is \"x-real-ip\", but is not read unless `trust` or `hops` \
                  says which proxies write it";
    let network = "but must be an address such as `10.0.0.7` or `2001:db8::1`, or a network such as \
                   `10.0.0.0/8` or `2001:db8::/32`";
    for (line, expected) in [
        ("trust = '10.0.0.0/8'", needs.into()),
        ("hops = 1", needs.into()),
        ("header = 'x-real-ip'", format!("2:10: {unread}")),
        ("trust = []\nheader = 'x-real-ip'", format!("3:10: {unread}")),
        (
            "trust = []\nhops = 1\nheader = 'x-real-ip'",
            "3:8: error: client.hops is 1, but is not read, because `trust` names no proxy".into(),
        ),
        (
            "trust = ['10.0.0.1/8', 'proxy']\nheader = 'x-real-ip'",
            format!(
                "2:10: error: client.trust is \"10.0.0.1/8\", but the address has bits beyond the \
                 network; write `10.0.0.0/8`\n\
                 2:24: error: client.trust is \"proxy\", {network}"
            ),
        ),
        (
            "hops = 0\nheader = 'x-real-ip'",
            "2:8: error: client.hops is 0, but must be from 1 to 255".into(),
        ),
        (
            "hops = 1\nheader = 'x real ip'",
            "3:10: error: client.header is \"x real ip\", but must be the name of a header: 1 to 64 \
             letters, digits and `-`"
                .into(),
        ),
        (
            "path = 'decode'",
            "2:8: error: client.path is \"decode\", but must be \"decoded\", \"as-sent\" or \
             \"normalized\"; did you mean \"decoded\"?"
                .into(),
        ),
        (
            "network = { v4 = 33 }",
            "2:18: error: client.network.v4 is 33, but must be from 1 to 32".into(),
        ),
        (
            "trusted = '10.0.0.0/8'",
            "2:1: error: client.trusted is not a field of a client; did you mean `trust`? Known: \
             trust, hops, header, network, path"
                .into(),
        ),
    ] {
        let problems = PolicyFile::from_toml(&format!("[client]\n{line}")).unwrap_err();
        assert_eq!(problems.to_string(), expected, "{line}");
    }
    let problems = PolicyFile::from_toml("client = 'x-real-ip'").unwrap_err();
    assert_eq!(
        problems.to_string(),
        "1:10: error: client is \"x-real-ip\", but must be a table, written as [client]"
    );
}

#[test]
fn trust_in_every_address_is_warned_of() {
    let all = "trust = ['10.0.0.0/8', '0.0.0.0/0', '::/0']\nheader = 'x-forwarded-for'";
    let message = "but trusts every address, so each client says which address it has; write the \
                   networks of the proxies, or `hops`";
    assert_eq!(
        warnings(&read(all)).to_string(),
        format!(
            "2:24: warning: client.trust is \"0.0.0.0/0\", {message}\n\
             2:37: warning: client.trust is \"::/0\", {message}"
        )
    );
    assert!(warnings(&read(&format!("hops = 1\n{all}"))).is_empty());
}
