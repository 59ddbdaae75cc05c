//! Slots of keys, and the answers of nodes about them.

use super::*;

fn node(host: &str, port: u16) -> Address {
    Address {
        host: host.to_owned(),
        port,
    }
}

#[test]
fn a_key_has_the_slot_of_what_is_in_its_first_braces() {
    // As `CLUSTER KEYSLOT` answers.
    for (key, slot) in [
        ("", 0),
        ("123456789", 12739),
        ("foo", 12182),
        ("api:{foo}:login", 12182),
        ("{foo}{bar}", 12182),
        ("{}foo", 9500),
        ("foo{", 7673),
    ] {
        assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
    }
}

#[test]
fn a_redirect_names_a_node_or_the_port_of_the_answering_one() {
    let answering = node("10.0.0.1", 7000);
    let read = |text| Address::of_redirect(text, &answering);
    assert_eq!(read("10.0.0.2:7001"), Some(node("10.0.0.2", 7001)));
    assert_eq!(read("::1:7001"), Some(node("::1", 7001)));
    assert_eq!(read(":7001"), Some(node("10.0.0.1", 7001)));
    for unknown in ["?:7001", "", "10.0.0.2", "10.0.0.2:70000", "10.0.0.2:x"] {
        assert_eq!(read(unknown), None, "{unknown}");
    }
}

#[test]
fn ranges_that_cannot_be_read_are_left_out() {
    let range = |first, last, host, port| {
        let node = Value::Array(vec![host, Value::Int(port), Value::Nil]);
        Value::Array(vec![
            Value::Int(first),
            Value::Int(last),
            node.clone(),
            node,
        ])
    };
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let answer = Value::Array(vec![
        range(0, 9, text("10.0.0.2"), 7001),
        range(10, 10, Value::Nil, 7002),
        range(11, 11, text("?"), 7003),
        range(12, 16_384, text("a"), 1),
        range(20, 19, text("a"), 1),
        range(30, -1, text("a"), 1),
        range(40, 41, text("a"), 70_000),
        Value::Array(vec![Value::Int(50)]),
        Value::Nil,
    ]);
    let read = ranges(answer, &node("10.0.0.1", 7000));
    let found: Vec<_> = read.iter().map(|r| (r.first, r.last, &r.address)).collect();
    let (one, other) = (node("10.0.0.2", 7001), node("10.0.0.1", 7002));
    assert_eq!(found, [(0, 9, &one), (10, 10, &other)]);
    assert_eq!(ranges(Value::Okay, &one), []);
}
