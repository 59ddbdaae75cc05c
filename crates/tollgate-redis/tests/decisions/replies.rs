//! Replies that no script gives.

use std::time::Duration;

use tollgate::{Denied, Quota};

use super::{Random, bucket};
use crate::client::Reply;
use crate::limit::Limit;
use crate::limit::bounds::SPAN;
use crate::limit::kind::{Kind, Mark};
use crate::script::packed::BadReply;
use crate::server::call::{self, Part};

/// Three permits every microsecond.
fn kind() -> Kind {
    bucket("3/us burst 6".parse::<Quota>().expect("a quota"))
}

/// Numbers as a script packs them.
fn packed(numbers: &[f64]) -> Reply {
    Reply::Bytes(numbers.iter().flat_map(|n| n.to_le_bytes()).collect())
}

fn list(head: &[i64], told: &[&[f64]]) -> Reply {
    let head = head.iter().copied().map(Reply::Int);
    Reply::List(head.chain(told.iter().map(|told| packed(told))).collect())
}

#[test]
fn right_replies_are_read_and_each_that_differs_in_form_is_bad() {
    let right: [(&[i64], &[f64]); 5] = [
        (&[1, 7], &[2.0, 7.0, 0.0]),
        (&[7], &[2.0, 7.0, 0.0]),
        (&[7], &[0.0, 2.0]),
        (&[7], &[7.0, 0.0, 7.0, 2.0]),
        (&[7], &[8.0]),
    ];
    each_that_differs_is_bad(kind(), right);
    let log = Limit::sliding_log(Quota::per_second(6)).expect("accepted");
    let right: [(&[i64], &[f64]); 5] = [
        (&[1, 7], &[2.0, 7.0, 0.0, 0.0]),
        (&[7], &[2.0, 7.0, 0.0, 0.0]),
        (&[7], &[2.0]),
        (&[7], &[2.0, 7.0, 4.0, 0.0]),
        (&[7], &[8.0]),
    ];
    each_that_differs_is_bad(log.kind, right);
    let slots = Limit::concurrency(6, Duration::from_secs(1)).expect("accepted");
    let right: [(&[i64], &[f64]); 5] = [
        (&[1, 7], &[2.0, 9.0, 0.0, 0.0]),
        (&[7], &[2.0, 9.0, 0.0, 0.0]),
        (&[7], &[2.0]),
        (&[7], &[2.0, 4.0, 9.0]),
        (&[7], &[8.0]),
    ];
    each_that_differs_is_bad(slots.kind, right);
}

/// Reads replies to each verb for two permits at tick 7.
fn each_that_differs_is_bad(kind: Kind, right: [(&[i64], &[f64]); 5]) {
    let key = b"k".as_slice();
    let parts = [Part {
        key,
        kind: &kind,
        n: 2,
    }];
    let marked = [(parts[0], Some(Mark::default()))];
    let reads = |reply: &Reply| {
        [
            call::taken(&parts, reply).is_ok(),
            call::seen(&parts, reply).is_ok(),
            call::given(&marked, reply).is_ok(),
            call::charged(&parts, reply).is_ok(),
            call::banned(&parts, reply).is_ok(),
        ]
    };
    for (which, (head, told)) in right.into_iter().enumerate() {
        assert!(reads(&list(head, &[told]))[which], "{which}");
        let bad = |reply: Reply, why: &str| {
            assert!(!reads(&reply)[which], "{which}: {why}: {reply:?}");
        };
        bad(list(head, &[]), "too short");
        bad(list(&head[1..], &[told]), "too short");
        bad(list(head, &[told, told]), "too long");
        bad(list(&[head, &[0]].concat(), &[told]), "too long");
        for length in 0..told.len() {
            bad(list(head, &[&told[..length]]), "too few numbers");
        }
        bad(list(head, &[&[told, &[0.0]].concat()]), "too many numbers");
        for position in 0..head.len() {
            for wrong in [-1, i64::MIN, i64::MAX, 1 << 53] {
                let mut head = head.to_vec();
                head[position] = wrong;
                bad(list(&head, &[told]), "a number out of its range");
            }
        }
        for position in 0..told.len() {
            for wrong in [-1.0, 0.5, 2.0_f64.powi(53), f64::NAN, f64::INFINITY] {
                let mut told = told.to_vec();
                told[position] = wrong;
                bad(list(head, &[&told]), "a number out of its range");
            }
        }
        let Reply::List(replies) = list(head, &[told]) else {
            unreachable!()
        };
        for position in 0..replies.len() {
            for wrong in [Reply::Nil, Reply::Bytes(vec![1]), Reply::List(Vec::new())] {
                let mut replies = replies.clone();
                replies[position] = wrong;
                bad(Reply::List(replies), "another type");
            }
        }
    }
    for reply in [
        Reply::Nil,
        Reply::Int(1),
        Reply::Bytes(b"1".to_vec()),
        list(&[], &[]),
    ] {
        assert_eq!(reads(&reply), [false; 5], "{reply:?}");
    }
}

/// The reply of the script for one bucket.
fn one(format: u32, n: u32, part: u32, numbers: &[f64]) -> Reply {
    let Reply::Bytes(numbers) = packed(numbers) else {
        unreachable!()
    };
    let mut reply = [n + (format << 28), part].map(u32::to_le_bytes).concat();
    reply.extend(numbers);
    Reply::Bytes(reply)
}

#[test]
fn the_short_reply_for_one_bucket_is_read_and_others_are_bad() {
    let kind = kind();
    let parts = [Part {
        key: b"k",
        kind: &kind,
        n: 2,
    }];
    let read = |reply: Reply| call::taken(&parts, &reply);
    // Two of six permits were taken at 7, of an idle bucket: it is idle at 7 2/3.
    let taken = read(one(1, 3, 2, &[7.0, 7.0, 1.0])).expect("a reply");
    assert_eq!(taken.expect("a grant")[0].granted.remaining(), 4);
    // It is idle at 9, so two permits are due in a microsecond.
    let denied = read(one(0, 3, 0, &[9.0, 0.0, 7.0])).expect("a reply");
    let later = Denied::later(2, Duration::from_micros(1));
    assert_eq!(denied.expect_err("a denial"), (0, later));
    for (reply, why) in [
        (one(2, 3, 2, &[7.0, 7.0, 1.0]), "another format"),
        (one(1, 4, 2, &[7.0, 7.0, 1.0]), "another rate"),
        (one(1, 3, 3, &[7.0, 7.0, 1.0]), "a part must be below n"),
        (one(1, 3, 2, &[7.0]), "too short"),
        (one(1, 3, 2, &[7.0, 7.0]), "without d"),
        (one(1, 3, 2, &[7.0, 7.0, 2.0]), "another rate"),
        (one(1, 3, 2, &[7.0, 7.0, 1.0, 1.0]), "too long"),
        (one(0, 3, 0, &[9.0, 7.0]), "too short"),
        (one(0, 3, 0, &[9.0, 0.0, 7.0, 0.0]), "too long"),
        (one(1, 3, 0, &[7.0, 7.0, 1.0]), "a grant must add its cost"),
        (
            one(1, 3, 1, &[9.0, 7.0, 1.0]),
            "a grant must be within the burst",
        ),
        (one(0, 3, 0, &[8.0, 0.0, 7.0]), "a denied request must wait"),
        (
            one(0, 3, 0, &[6.0, 0.0, 7.0]),
            "it must not be idle before now",
        ),
    ] {
        assert_eq!(read(reply), Err(BadReply), "{why}");
    }
}

#[test]
fn the_short_reply_for_several_buckets_is_read_and_others_are_bad() {
    let kind = kind();
    let part = |key| Part {
        key,
        kind: &kind,
        n: 2,
    };
    let parts = [part(b"a".as_slice()), part(b"b")];
    let bytes = |reply: Reply| match reply {
        Reply::Bytes(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    let granted = bytes(one(1, 3, 2, &[7.0, 7.0, 1.0]));
    let denied = bytes(one(0, 3, 0, &[9.0, 0.0, 7.0]));
    let read = |values: &[&[u8]]| call::taken(&parts, &Reply::Bytes(values.concat()));
    let taken = read(&[&granted, &granted])
        .expect("a reply")
        .expect("grants");
    assert_eq!(taken.len(), 2);
    for (values, why) in [
        (&[granted.as_slice()][..], "too few"),
        (&[&granted, &granted, &granted], "too many"),
        (&[&granted, &granted, b"x"], "too long"),
        (&[&denied, &denied], "denials are told otherwise"),
        (&[], "empty"),
    ] {
        assert_eq!(read(values), Err(BadReply), "{why}");
    }
}

#[test]
fn replies_that_contradict_the_request_are_bad() {
    let kind = kind();
    let key = b"k".as_slice();
    let parts = [Part {
        key,
        kind: &kind,
        n: 2,
    }];
    let taken =
        |granted, told: &[f64]| call::taken(&parts, &list(&[granted, 7], &[told])).map(drop);
    for (granted, told, why) in [
        (1, [3.0, 7.0, 0.0], "a part must be below n"),
        (0, [0.0, 7.0, 0.0], "a denied part must have to wait"),
        (1, [1.0, 9.0, 0.0], "a grant must be within the burst"),
        (1, [2.0, 6.0, 0.0], "it must not be idle before now"),
        (1, [2.0, 7.0, 8.0], "a banned key must not be granted"),
        (2, [2.0, 7.0, 0.0], "a grant is 1"),
    ] {
        assert_eq!(taken(granted, &told), Err(BadReply), "{why}");
    }
    let given = call::given(&[(parts[0], None)], &list(&[7], &[&[1.0, 0.0]]));
    assert_eq!(
        given,
        Err(BadReply),
        "no more than was asked for comes back"
    );
    let charged = |told: &[f64]| call::charged(&parts, &list(&[7], &[told])).map(drop);
    assert_eq!(
        charged(&[7.0, 0.0, 8.0, 0.0]),
        Err(BadReply),
        "no more is charged than was asked"
    );
    assert_eq!(
        charged(&[7.0, 1.0, 7.0, 0.0]),
        Err(BadReply),
        "a charge must not give back"
    );
}

#[test]
fn the_part_that_waits_longest_is_named() {
    let kind = kind();
    let part = |key| Part {
        key,
        kind: &kind,
        n: 3,
    };
    let parts = [part(b"a".as_slice()), part(b"b"), part(b"c")];
    let refused = |now, told: &[&[f64]]| {
        let taken = call::taken(&parts, &list(&[0, now], told));
        taken.expect("a reply").expect_err("a denial")
    };
    let wait = |told: &[&[f64]]| {
        let (part, denied) = refused(7, told);
        (part, denied.retry_after().map(|wait| wait.as_micros()))
    };
    let told: [&[f64]; 3] = [&[0.0, 9.0, 0.0], &[1.0, 10.0, 0.0], &[0.0, 10.0, 0.0]];
    assert_eq!(wait(&told), (1, Some(3)));
    let told: [&[f64]; 3] = [&[0.0, 9.0, 0.0], &[0.0, 9.0, 0.0], &[0.0, 7.0, 0.0]];
    assert_eq!(wait(&told), (0, Some(1)), "equal: the first");
    let last = SPAN as f64;
    let told: [&[f64]; 3] = [
        &[0.0, last, 0.0],
        &[0.0, last + 2.0, 0.0],
        &[0.0, last, 0.0],
    ];
    assert_eq!(refused(SPAN as i64, &told), (1, Denied::stuck(3)));
}

#[test]
fn no_reply_panics() {
    let mut random = Random(9);
    let quota = |text: &str| text.parse::<Quota>().expect("a quota");
    let lease = Duration::from_secs(1);
    let limits = [
        Limit::token_bucket(quota("3/us burst 6")),
        Limit::token_bucket(quota("7/3ns burst 1Gi")),
        Limit::leaky_queue(quota("1/d"), u64::MAX),
        Limit::fixed_window(quota("4503599627370495/d")),
        Limit::first_hit_window(quota("5/min")),
        Limit::sliding_window(quota("4503599627370495/18250d")),
        Limit::sliding_log(quota("20000/h")),
        Limit::concurrency(2_000, lease),
    ];
    let kinds = limits.map(|limit| limit.expect("accepted").kind);
    for _ in 0..200_000 {
        let count = random.below(3) as usize;
        let parts: Vec<_> = (0..count)
            .map(|_| {
                let n = random.any_size(u64::MAX);
                let kind = &kinds[random.below(kinds.len() as u64) as usize];
                Part { key: b"k", kind, n }
            })
            .collect();
        let marked: Vec<_> = parts.iter().map(|part| (*part, None)).collect();
        let wait = random.any_size(SPAN);
        let reply = any_reply(&mut random, 2);
        let _ = call::taken(&parts, &reply);
        if let [part, ..] = parts[..] {
            let _ = call::reserved(part, wait, &reply);
        }
        let _ = call::given(&marked, &reply);
        let _ = call::charged(&parts, &reply);
        let _ = call::banned(&parts, &reply);
        if let Ok(seen) = call::seen(&parts, &reply) {
            for (seen, part) in seen.iter().zip(&parts) {
                let _ = part.kind.available(seen);
                let _ = part.kind.refused(seen, part.n, wait);
                let _ = part.kind.taken(seen, part.n, wait);
                let _ = seen.banned_for();
            }
        }
    }
}

fn any_reply(random: &mut Random, depth: u32) -> Reply {
    match random.below(40) {
        0 => Reply::Nil,
        1 => Reply::List(vec![Reply::Int(1)]),
        _ if depth == 2 => {
            let length = random.below(10);
            Reply::List((0..length).map(|_| any_reply(random, 1)).collect())
        }
        2 => Reply::Int(random.next() as i64),
        3..10 => Reply::Int(random.any_size(5 * SPAN) as i64),
        10..20 => Reply::Int(random.any_size(3) as i64),
        _ => {
            let length = random.below(6);
            let number = |random: &mut Random| match random.below(20) {
                0 => f64::from_bits(random.next()),
                1..10 => random.any_size(5 * SPAN) as f64,
                _ => random.any_size(3) as f64,
            };
            packed(&(0..length).map(|_| number(random)).collect::<Vec<_>>())
        }
    }
}

#[test]
fn an_answer_about_a_lease_is_read_and_each_that_differs_in_form_is_bad() {
    let right = [7.0, 2.0, 3.0, 9.0, 11.0, 13.0];
    let leased = call::leased(&packed(&right)).expect("an answer");
    let answer = leased.answer;
    assert_eq!((answer.number, answer.keeps, answer.granted), (7, 2, 3));
    assert_eq!((leased.wait, leased.turn, leased.ban), (9, 11, 13));
    for at in 0..right.len() {
        let shorter = right.get(..at).expect("fewer numbers");
        assert_eq!(call::leased(&packed(shorter)), Err(BadReply));
        for wrong in [-1.0, 0.5, f64::NAN, f64::INFINITY, 2_f64.powi(53)] {
            let mut numbers = right;
            numbers[at] = wrong;
            assert_eq!(
                call::leased(&packed(&numbers)),
                Err(BadReply),
                "{at} {wrong}"
            );
        }
    }
    // More permits than a process can hold.
    for at in [1, 2] {
        let mut numbers = right;
        numbers[at] = 2_097_152.0;
        assert_eq!(call::leased(&packed(&numbers)), Err(BadReply));
    }
    let longer = [&right[..], &[0.0]].concat();
    for reply in [
        packed(&longer),
        Reply::Int(7),
        Reply::Nil,
        Reply::List(vec![]),
    ] {
        assert_eq!(call::leased(&reply), Err(BadReply));
    }
}
