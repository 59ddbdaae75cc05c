//! A composition answers as its members do on their own: it grants exactly if all of them would.

use tollgate::compose::{BoxMember, Members};

use super::limits::{Limits, Pick, numbers};
use super::run::{End, Run, Seen};
use crate::support::*;

const EACH_RUN: u64 = 200;

/// Every limit but the log.
const PICKS: [Pick; 10] = [
    Pick::Word(0),
    Pick::Word(1),
    Pick::Word(2),
    Pick::Adjustable,
    Pick::Sharded,
    Pick::Slotted,
    Pick::Key(0),
    Pick::Key(1),
    Pick::OtherKey(0),
    Pick::Inside,
];

/// Returns this many different limits, or with a limit that appears twice.
fn picks(n: usize, random: &mut Random) -> Vec<Pick> {
    let mut from = PICKS.to_vec();
    let mut pick = |_| from.swap_remove(random.below(from.len() as u64) as usize);
    let mut picks: Vec<_> = (0..n).map(&mut pick).collect();
    let (from, to) = (
        random.below(n as u64) as usize,
        random.below(n as u64) as usize,
    );
    if random.one_in(4) {
        picks[to] = picks[from];
    }
    if picks.iter().all(|pick| *pick == Pick::Inside) {
        // At least one member needs a clock.
        picks.push(Pick::Word(0));
        picks.swap_remove(0);
    }
    picks
}

/// Compares a composition whose grants can be undone.
fn settling<M: Members<ManualClock>>(
    run: &Run<'_>,
    members: M,
    random: &mut Random,
    seen: &mut Seen,
) {
    let all = All::new(members).expect("members");
    run.compare(&all, EACH_RUN, random, seen, |mut granted, how, now| {
        Some(match how {
            End::Drop => {
                drop(granted);
                [0; 3]
            }
            End::Undo => [granted.undo_at(now), 0, 0],
            End::Settle(actual) => {
                numbers(granted.settle_at(actual, now).expect("a cost for each"))
            }
        })
    });
}

/// Compares a composition whose grants are dropped only.
fn dropping<M: Members<ManualClock>>(
    run: &Run<'_>,
    members: M,
    random: &mut Random,
    seen: &mut Seen,
) {
    let all = All::new(members).expect("members");
    run.compare(&all, EACH_RUN, random, seen, |granted, _, _| {
        drop(granted);
        None
    });
}

/// Compares compositions of random limits, each with its twins, for many operations.
fn compare(
    seed: u64,
    picks: impl Fn(&mut Random) -> Vec<Pick>,
    run: impl Fn(&Run<'_>, &mut dyn Iterator<Item = BoxMember<'_, ManualClock>>, &mut Random, &mut Seen),
) -> Seen {
    let (mut random, mut seen) = (Random(seed), Seen::default());
    while seen.operations < often(20_000) {
        let clock = ManualClock::at(tick(NOW));
        let made = Random(random.next());
        let [members, twins] = [(); 2].map(|()| Limits::new(made.clone(), &clock));
        let picks = picks(&mut random);
        let it = Run {
            clock: &clock,
            members: &members,
            twins: &twins,
            picks: &picks,
        };
        let mut limits = picks.iter().map(|pick| members.limit(*pick).member());
        run(&it, &mut limits, &mut random, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.granted > 1000 && seen.later > 1000, "{seen:?}");
    assert!(seen.never > 100 && seen.several_deny > 10, "{seen:?}");
    seen
}

fn settled(seen: &Seen) {
    assert!(seen.undone > 100 && seen.returned > 100, "{seen:?}");
    assert!(seen.charged > 100, "{seen:?}");
}

#[test]
fn a_vec_answers_as_its_members_do() {
    let picks = |random: &mut Random| {
        let n = 1 + random.below(8) as usize;
        picks(n, random)
    };
    let seen = compare(0xc0_4401, picks, |run, limits, random, seen| {
        settling(run, limits.collect::<Vec<_>>(), random, seen);
    });
    settled(&seen);
    assert!(seen.busy > 100, "{seen:?}");
}

#[test]
fn an_array_answers_as_its_members_do() {
    let picks = |random: &mut Random| picks(3, random);
    let seen = compare(0xc0_4402, picks, |run, limits, random, seen| {
        let [a, b, c] = [(); 3].map(|()| limits.next().expect("a limit"));
        settling(run, [a, b, c], random, seen);
    });
    settled(&seen);
}

#[test]
fn nested_compositions_answer_as_their_members_do() {
    let picks = |random: &mut Random| picks(8, random);
    let seen = compare(0xc0_4403, picks, |run, limits, random, seen| {
        let mut next = || limits.next().expect("a limit");
        let first = next();
        let list = vec![next(), next()];
        let inner = All::new(((next(), next()), [next()])).expect("an inner composition");
        let last = [next(), next()];
        settling(
            run,
            (
                first,
                (list, Vec::<BoxMember<'_, ManualClock>>::new()),
                inner,
                last,
            ),
            random,
            seen,
        );
    });
    settled(&seen);
}

/// The members have their own types.
#[test]
fn a_tuple_of_every_kind_answers_as_its_members_do() {
    let picks = |_: &mut Random| {
        let words = [
            Pick::Word(0),
            Pick::Adjustable,
            Pick::Sharded,
            Pick::Slotted,
        ];
        let keys = [Pick::Key(0), Pick::OtherKey(0), Pick::Inside, Pick::Word(1)];
        [words, keys].concat()
    };
    let seen = compare(0xc0_4404, picks, |run, _, random, seen| {
        let of = run.members;
        let members = (
            &of.words[0],
            &of.adjustable,
            &of.sharded,
            &of.slotted,
            of.keys.key(&0_u64),
            of.other_keys.key(&0_u64),
            &of.inside,
            &of.words[1],
        );
        settling(run, members, random, seen);
    });
    settled(&seen);
    assert!(seen.busy > 100, "{seen:?}");
}

/// A log is taken from last, wherever it stands.
#[test]
fn a_tuple_with_a_log_answers_as_its_members_do() {
    let picks = |_: &mut Random| {
        let first = [Pick::Log, Pick::Word(0), Pick::Key(0)];
        let last = [Pick::OtherKey(1), Pick::Slotted, Pick::Inside];
        [first, last].concat()
    };
    let seen = compare(0xc0_4405, picks, |run, _, random, seen| {
        let of = run.members;
        let keys = (of.keys.key(&0_u64), of.other_keys.key(&1_u64));
        dropping(
            run,
            (&of.log, &of.words[0], keys, &of.slotted, &*of.inside),
            random,
            seen,
        );
    });
    assert!(seen.busy > 100, "{seen:?}");
}

#[test]
fn a_vec_with_a_log_answers_as_its_members_do() {
    let picks = |random: &mut Random| {
        let mut picks = picks(4, random);
        picks[random.below(4) as usize] = Pick::Log;
        picks
    };
    compare(0xc0_4406, picks, |run, limits, random, seen| {
        dropping(run, limits.collect::<Vec<_>>(), random, seen);
    });
}
