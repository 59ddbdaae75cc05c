//! Replies that no script gives.

use tollgate::{Denied, Quota};

use super::Random;
use crate::bucket::{self, BadReply, Part};
use crate::client::Reply;
use crate::rate::{Rate, SPAN, Ticks};

fn list(numbers: &[i64]) -> Reply {
    Reply::List(numbers.iter().copied().map(Reply::Int).collect())
}

/// Three permits every microsecond.
fn rate() -> Rate {
    Rate::new("3/us burst 6".parse::<Quota>().expect("a quota")).expect("accepted")
}

#[test]
fn right_replies_are_read_and_each_that_differs_in_form_is_bad() {
    let rate = rate();
    let key = b"k".as_slice();
    let parts = [Part {
        key,
        rate: &rate,
        n: 2,
    }];
    let marked = [(parts[0], Some(Ticks { whole: 9, part: 0 }))];
    let reads = |reply: &Reply| {
        [
            bucket::taken(&parts, reply).is_ok(),
            bucket::seen(&parts, reply).is_ok(),
            bucket::given(&marked, reply).is_ok(),
            bucket::charged(&parts, reply).is_ok(),
            bucket::banned(&parts, reply).is_ok(),
        ]
    };
    let right: [&[i64]; 5] = [
        &[1, 7, 7, 2, 0],
        &[7, 7, 2, 0],
        &[7, 0, 2],
        &[7, 7, 0, 7, 2],
        &[7, 8],
    ];
    for (which, numbers) in right.into_iter().enumerate() {
        assert!(reads(&list(numbers))[which], "{which}");
        for length in 0..numbers.len() {
            assert!(
                !reads(&list(&numbers[..length]))[which],
                "{which}: too short"
            );
        }
        let longer = [numbers, &[0]].concat();
        assert!(!reads(&list(&longer))[which], "{which}: too long");
        for position in 0..numbers.len() {
            for wrong in [-1, i64::MIN, i64::MAX, 1 << 53] {
                let mut numbers = numbers.to_vec();
                numbers[position] = wrong;
                assert!(!reads(&list(&numbers))[which], "{which}: {numbers:?}");
            }
            let mut replies: Vec<_> = numbers.iter().copied().map(Reply::Int).collect();
            let text = numbers[position].to_string().into_bytes();
            for wrong in [Reply::Nil, Reply::Bytes(text), Reply::List(Vec::new())] {
                replies[position] = wrong;
                assert!(
                    !reads(&Reply::List(replies.clone()))[which],
                    "{which}: {replies:?}"
                );
            }
        }
    }
    for reply in [
        Reply::Nil,
        Reply::Int(1),
        Reply::Bytes(b"1".to_vec()),
        list(&[]),
    ] {
        assert_eq!(reads(&reply), [false; 5], "{reply:?}");
    }
}

#[test]
fn replies_that_contradict_the_request_are_bad() {
    let rate = rate();
    let key = b"k".as_slice();
    let parts = [Part {
        key,
        rate: &rate,
        n: 2,
    }];
    let taken = |numbers: &[i64]| bucket::taken(&parts, &list(numbers)).map(drop);
    assert_eq!(
        taken(&[1, 7, 7, 3, 0]),
        Err(BadReply),
        "a part must be below n"
    );
    assert_eq!(
        taken(&[0, 7, 7, 0, 0]),
        Err(BadReply),
        "a denied part must have to wait"
    );
    assert_eq!(
        taken(&[1, 7, 9, 1, 0]),
        Err(BadReply),
        "a grant must be within the burst"
    );
    assert_eq!(
        taken(&[1, 7, 6, 2, 0]),
        Err(BadReply),
        "a grant must not end before now"
    );
    assert_eq!(
        taken(&[1, 7, 7, 2, 8]),
        Err(BadReply),
        "a banned key must not be granted"
    );
    let given = bucket::given(&[(parts[0], None)], &list(&[7, 1, 0]));
    assert_eq!(
        given,
        Err(BadReply),
        "no more than was asked for comes back"
    );
    let charged = |numbers: &[i64]| bucket::charged(&parts, &list(numbers)).map(drop);
    assert_eq!(
        charged(&[7, 7, 0, 8, 0]),
        Err(BadReply),
        "no more is charged than was asked"
    );
    assert_eq!(
        charged(&[7, 7, 1, 7, 0]),
        Err(BadReply),
        "a charge must not give back"
    );
}

#[test]
fn the_part_that_waits_longest_is_named() {
    let rate = rate();
    let part = |key| Part {
        key,
        rate: &rate,
        n: 3,
    };
    let parts = [part(b"a".as_slice()), part(b"b"), part(b"c")];
    let wait = |numbers: &[i64]| {
        bucket::taken(&parts, &list(numbers)).map(|taken| {
            let (part, denied) = taken.unwrap_err();
            (part, denied.retry_after().map(|wait| wait.as_micros()))
        })
    };
    assert_eq!(wait(&[0, 7, 9, 0, 0, 10, 1, 0, 10, 0, 0]), Ok((1, Some(3))));
    assert_eq!(
        wait(&[0, 7, 9, 0, 0, 9, 0, 0, 7, 0, 0]),
        Ok((0, Some(1))),
        "equal: the first"
    );
    let last = SPAN as i64;
    let numbers = [0, last, last, 0, 0, last + 2, 0, 0, last, 0, 0];
    let stuck = bucket::taken(&parts, &list(&numbers))
        .expect("a reply")
        .unwrap_err();
    assert_eq!(stuck, (1, Denied::stuck(3)));
}

#[test]
fn no_reply_panics() {
    let mut random = Random(9);
    let rates = ["3/us burst 6", "1/d", "67108864/d", "7/3ns burst 1Gi"]
        .map(|text| Rate::new(text.parse::<Quota>().expect("a quota")).expect("accepted"));
    for _ in 0..200_000 {
        let count = random.below(3) as usize;
        let parts: Vec<_> = (0..count)
            .map(|i| {
                let n = random.any_size(u64::MAX);
                Part {
                    key: b"k",
                    rate: &rates[i],
                    n,
                }
            })
            .collect();
        let marked: Vec<_> = parts.iter().map(|part| (*part, None)).collect();
        let reply = any_reply(&mut random, 2);
        let _ = bucket::taken(&parts, &reply);
        let _ = bucket::given(&marked, &reply);
        let _ = bucket::charged(&parts, &reply);
        let _ = bucket::banned(&parts, &reply);
        if let Ok(seen) = bucket::seen(&parts, &reply) {
            for (seen, part) in seen.iter().zip(&parts) {
                let _ = (seen.available(part.rate), seen.check(part.rate, part.n));
                let _ = seen.banned_for();
            }
        }
    }
}

fn any_reply(random: &mut Random, depth: u32) -> Reply {
    match random.below(if depth == 2 { 20 } else { 40 }) {
        0 => Reply::Nil,
        1 => Reply::Bytes(random.next().to_string().into_bytes()),
        _ if depth == 2 => {
            let length = random.below(10);
            Reply::List((0..length).map(|_| any_reply(random, 1)).collect())
        }
        2 if depth == 1 => Reply::List(vec![Reply::Int(1)]),
        3 => Reply::Int(random.next() as i64),
        4..10 => Reply::Int(random.any_size(5 * SPAN) as i64),
        _ => Reply::Int(random.any_size(3) as i64),
    }
}
