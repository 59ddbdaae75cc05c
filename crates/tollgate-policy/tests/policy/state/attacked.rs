//! States that no policy wrote, and states that are read at another time or by another file.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tollgate::ManualClock;
use tollgate_policy::{Policy, RuleState, StateError};

use crate::state::{left, next, policy, rule, saved};

const HOUR: Duration = Duration::from_secs(3600);

/// The checksum at the end of a state.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
    let sum = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), step)
    });
    !sum
}

/// Returns a state with this content and the right checksum.
pub(crate) fn sealed(content: &[u8]) -> Vec<u8> {
    [content, &crc32(content).to_le_bytes()].concat()
}

/// Returns a state without one section of a rule.
pub(crate) fn without_section(state: &[u8], rule: &str, limit: u32) -> Vec<u8> {
    let content = &state[..state.len() - 4];
    let number = |at: usize| {
        let bytes = content[at..at + 4].try_into().expect("4 bytes");
        u32::from_le_bytes(bytes) as usize
    };
    let (mut at, mut kept) = (24, content[..24].to_vec());
    while at < content.len() {
        let start = at;
        let name = &content[at + 4..at + 4 + number(at)];
        at += 4 + name.len();
        let section_limit = number(at);
        at += 4;
        at += 4 + number(at);
        let texts = number(at);
        at += 4;
        for _ in 0..texts {
            at += 4 + number(at);
        }
        at += 8 + number(at);
        if (name, section_limit) != (rule.as_bytes(), limit as usize) {
            kept.extend_from_slice(&content[start..at]);
        }
    }
    sealed(&kept)
}

fn read(state: &[u8]) -> Result<(), StateError> {
    Policy::builder().restore(&mut { state }).map(drop)
}

const TEXT: &str = "
    apply = 'all'
    [[rule]]
    name = 'a'
    key = 'user'
    limit = ['60/h', 'sliding-window 600/h']
    capacity = 64
    ban = { after = 2, for = '2h' }
    [[rule]]
    name = 'b'
    limit = 'fixed-window 50/h'
";

fn used() -> Policy<ManualClock> {
    let old = policy(TEXT);
    for user in ["ann", "bob"] {
        for _ in 0..3 {
            assert!(old.decide(&[("user", user)]).is_allowed());
        }
    }
    old
}

#[test]
fn a_changed_state_with_the_right_checksum_is_refused_or_starts_anew() {
    let state = saved(&used());
    let content = &state[..state.len() - 4];
    assert_eq!(sealed(content), state, "the checksum of the test is right");
    for at in 0..content.len() {
        let mut changed = content.to_vec();
        changed[at] ^= [1, 0x80, 0xff][at % 3];
        let state = sealed(&changed);
        let builder = Policy::builder().clock(ManualClock::new());
        let Ok(builder) = builder.restore_after(&mut state.as_slice(), Duration::ZERO) else {
            continue;
        };
        let new = builder.build_toml(TEXT).expect("a policy");
        for user in ["ann", "bob", "carol"] {
            let decision = new.decide(&[("user", user)]);
            assert!(decision.asked().all(|it| it.remaining() < 600), "{at}");
        }
    }
}

#[test]
fn lengths_that_are_larger_than_the_state_are_refused() {
    let start = [b"tgpolic1".as_slice(), &[7; 16]].concat();
    assert!(read(&sealed(&start)).is_ok(), "no sections");
    let number = |n: u32| n.to_le_bytes().to_vec();
    let most = number(u32::MAX);
    let text = |text: &str| [number(text.len() as u32), text.into()].concat();
    let sections = [
        vec![0],
        most.clone(),
        [text("a"), most.clone()].concat(),
        [text("a"), number(0), most.clone()].concat(),
        [text("a"), number(0), text("k"), most.clone()].concat(),
        [text("a"), number(0), text("k"), number(1), most.clone()].concat(),
        [text("a"), number(0), text("k"), number(0), vec![0xff; 8]].concat(),
        [text("a"), number(0), text("k"), most, text("x"), vec![0; 8]].concat(),
        [
            number(1),
            vec![0xff],
            number(0),
            text("k"),
            number(0),
            vec![0; 8],
        ]
        .concat(),
    ];
    for section in sections {
        let error = read(&sealed(&[start.clone(), section.clone()].concat()));
        assert!(
            matches!(error, Err(StateError::Damaged)),
            "{section:?}: {error:?}"
        );
    }
    for short in [
        &b"tgpolic1"[..],
        b"tgpolic",
        b"",
        b"tgpolic2aaaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        assert!(read(short).is_err());
    }
    assert!(read(&sealed(b"tgpolic1")).is_err(), "no seed");
}

#[test]
fn a_reader_that_fails_is_an_error() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("unplugged"))
        }
    }
    let error = Policy::builder().restore(&mut Broken).unwrap_err();
    assert!(matches!(error, StateError::Io(_)) && error.to_string().contains("unplugged"));
}

#[test]
fn limits_that_are_never_saved_do_not_make_a_rule_anew() {
    let text = rule("a", "key = 'user'\nlimit = ['concurrency 5', '60/h']")
        + &rule("b", "when = 'never'\nlimit = 'concurrency 5'");
    let old = policy(&text);
    let ann = [("user", "ann")];
    let _inside = old.decide(&ann);
    let new = next(&saved(&old), Duration::ZERO, &text);
    assert!(
        new.restored()
            .eq([("a", RuleState::Kept), ("b", RuleState::New)])
    );
    let remaining = new.decide(&ann);
    let remaining: Vec<_> = remaining.asked().map(|it| it.remaining()).collect();
    assert_eq!(remaining, [4, 58]);
}

#[test]
fn a_state_that_is_restored_and_saved_again_is_the_same() {
    let old = used();
    let first = saved(&old);
    let middle = next(&first, Duration::ZERO, TEXT);
    let last = next(&saved(&middle), Duration::ZERO, TEXT);
    for user in ["ann", "bob", "carol"] {
        let [was, is] = [&old, &last].map(|policy| {
            let decision = policy.decide(&[("user", user)]);
            decision
                .asked()
                .map(|it| it.remaining())
                .collect::<Vec<_>>()
        });
        assert_eq!(was, is, "{user}");
    }
    // Of two states, the second one counts.
    let fresh = saved(&policy(TEXT));
    let builder = Policy::builder().clock(ManualClock::new());
    let both = builder.restore_after(&mut fresh.as_slice(), HOUR);
    let both = both.and_then(|both| both.restore_after(&mut first.as_slice(), Duration::ZERO));
    let both = both
        .expect("both are states")
        .build_toml(TEXT)
        .expect("a policy");
    assert_eq!(left(&both, &[("user", "ann")]), Some(43));
}

#[test]
fn a_state_of_other_names_and_positions_is_not_taken() {
    let state = saved(&used());
    let text = TEXT.replace("name = 'a'", "name = 'c'").replace(
        "['60/h', 'sliding-window 600/h']",
        "['60/h', 'sliding-window 60/h']",
    );
    let new = next(&state, Duration::ZERO, &text);
    assert!(
        new.restored()
            .eq([("c", RuleState::New), ("b", RuleState::Kept)])
    );
    let swapped = TEXT.replace(
        "['60/h', 'sliding-window 600/h']",
        "['sliding-window 600/h', '60/h']",
    );
    let new = next(&state, Duration::ZERO, &swapped);
    assert_eq!(
        new.restored().next(),
        Some(("a", RuleState::Fresh("its algorithm changed")))
    );
    let more = TEXT.replace("'sliding-window 600/h'", "'sliding-window 600/h', '9/s'");
    let new = next(&state, Duration::ZERO, &more);
    assert_eq!(
        new.restored().next(),
        Some(("a", RuleState::Fresh("there is no state of this limit")))
    );
    let decision = new.decide(&[("user", "ann")]);
    let remaining: Vec<_> = decision.asked().map(|it| it.remaining()).collect();
    assert_eq!(remaining, [56, 596, 8, 43]);
}

#[test]
fn bans_and_permits_know_how_old_the_state_is() {
    let text = rule(
        "a",
        "key = 'user'\nlimit = '3/h'\nban = { after = 2, for = '2h' }",
    );
    let old = policy(&text);
    old.clock().advance(HOUR);
    let [ann, eve] = [[("user", "ann")], [("user", "eve")]];
    assert_eq!(left(&old, &ann), Some(2));
    for _ in 0..5 {
        let _ = old.decide(&eve);
    }
    let state = saved(&old);
    for (elapsed, remaining, banned) in [
        (Duration::ZERO, 1, Some(2 * HOUR)),
        (HOUR, 2, Some(HOUR)),
        (2 * HOUR, 2, None),
        (Duration::MAX, 2, None),
    ] {
        let new = next(&state, elapsed, &text);
        assert_eq!(left(&new, &ann), Some(remaining), "{elapsed:?}");
        assert_eq!(new.decide(&eve).retry_after(), banned, "{elapsed:?}");
        new.clock().advance(banned.unwrap_or_default());
        assert!(new.decide(&eve).is_allowed(), "{elapsed:?}");
    }
}

#[test]
fn a_state_that_is_saved_while_threads_decide_has_all_that_went_before() {
    let text = rule(
        "a",
        "key = 'user'\nlimit = '1000000/h burst 100000'\ncapacity = 64",
    );
    let old = Arc::new(policy(&text));
    let users = ["ann", "bob", "carol", "dave"];
    for user in users {
        for _ in 0..100 {
            assert!(old.decide(&[("user", user)]).is_allowed());
        }
    }
    let states = thread::scope(|scope| {
        for user in users {
            let old = &old;
            scope.spawn(move || {
                for _ in 0..2000 {
                    assert!(old.decide(&[("user", user)]).is_allowed());
                }
            });
        }
        (0..20).map(|_| saved(&old)).collect::<Vec<_>>()
    });
    for state in states {
        let new = next(&state, Duration::ZERO, &text);
        for user in users {
            let left = left(&new, &[("user", user)]).expect("a limit");
            assert!((97_899..=99_899).contains(&left), "{user}: {left}");
        }
    }
}

#[test]
fn overrides_that_change_over_a_restart_hold_from_then_on() {
    let text = |own: &str| {
        rule(
            "a",
            &format!("key = 'user'\nlimit = 'fixed-window 10/h'\noverride = [{own}]"),
        )
    };
    let old = policy(&text("{ key = 'ann', limit = 'fixed-window 50/h' }"));
    let [ann, bob] = [[("user", "ann")], [("user", "bob")]];
    assert_eq!((left(&old, &ann), left(&old, &bob)), (Some(49), Some(9)));
    let state = saved(&old);
    for (own, anns, bobs) in [
        ("{ key = 'ann', limit = 'fixed-window 50/h' }", 48, 8),
        ("{ key = 'ann', limit = 'fixed-window 20/h' }", 19, 8),
        ("", 9, 8),
        ("{ key = 'bob', limit = 'fixed-window 5/h' }", 9, 4),
    ] {
        let new = next(&state, Duration::ZERO, &text(own));
        assert_eq!(
            (left(&new, &ann), left(&new, &bob)),
            (Some(anns), Some(bobs)),
            "{own}"
        );
    }
}
