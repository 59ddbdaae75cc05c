//! Shards: threads take from siblings and from several parts together, and put back what they could not use,
//! beside others who take and give back. Never more is had than the whole allows; at a standing tick nothing is
//! lost; who stops stops nobody.

#![cfg(tollgate_loom)]

use std::time::Duration;

use tollgate::primitive::modelled::Mistake;
use tollgate::{Granted, NoClock, Quota, Sharded, Tick, TokenBucket};
use tollgate_loom_tests::{
    Answer, Deed as Any, Play as AnyPlay, Played, Run, mistaken, model, stored,
};

type Gate = Sharded<TokenBucket, NoClock>;
/// An actor keeps its last grant.
type Hand = Option<Granted>;
type Deed = Any<Gate, Hand>;
type Play = AnyPlay<Gate, Hand>;

/// A permit each 100 ns, of which each of two parts makes one in 200.
const EACH: u64 = 100;

/// Two parts with so many permits together.
fn gate(burst: u64) -> Gate {
    let quota = Quota::per(1, Duration::from_nanos(EACH)).burst(burst);
    let bucket = TokenBucket::new(quota).expect("a quota");
    Sharded::starting_at(bucket, 2, NoClock, Tick::ZERO).expect("two parts")
}

/// Takes `n` at this tick, at home in this part.
fn acquire(home: usize, n: u64, tick: u64) -> Deed {
    Deed::new(
        format!("acquire {n} from {home} at {tick}"),
        move |gate, hand| {
            let view = gate.at(Tick::from_nanos(tick)).from_shard(home);
            match view.try_acquire_n(n) {
                Ok(granted) => {
                    *hand = Some(granted);
                    Answer::Granted(granted)
                }
                Err(denied) => Answer::Denied(denied),
            }
        },
    )
}

/// Gives back the last grant, if there was one.
fn undo(tick: u64) -> Deed {
    Deed::new(format!("undo at {tick}"), move |gate, hand| {
        let back = hand
            .take()
            .map(|granted| gate.at(Tick::from_nanos(tick)).undo(granted));
        Answer::CameBack(back.unwrap_or(0))
    })
}

fn refund(home: usize, n: u64, tick: u64) -> Deed {
    Deed::new(format!("refund {n} at {tick}"), move |gate, _| {
        let view = gate.at(Tick::from_nanos(tick)).from_shard(home);
        Answer::CameBack(view.refund(n))
    })
}

fn reset() -> Deed {
    Deed::new("reset", |gate, _| {
        gate.reset();
        Answer::Done
    })
}

/// What was granted at this tick, less what came back.
fn granted_at(played: &Played, tick: u64) -> i64 {
    let net = played.all().map(|answer| match answer {
        Answer::Granted(granted) if granted.at().as_nanos() == tick => granted.n() as i64,
        Answer::CameBack(n) => -(*n as i64),
        _ => 0,
    });
    net.sum()
}

fn count(played: &Played) -> i64 {
    match played.after[0] {
        Answer::Count(there) => there as i64,
        _ => panic!("no count"),
    }
}

/// A play at tick 0, after which all that was not granted is there, and never more.
fn standing(burst: u64, actors: &[[&[Deed]; 2]]) -> Play {
    let mut play = Play::at(move || gate(burst));
    for [before, deeds] in actors {
        play = play.actor_after(before, deeds);
    }
    play.after(|gate, _| vec![Answer::Count(gate.at(Tick::ZERO).available())])
        .rule(move |played| {
            let (granted, there) = (granted_at(played, 0), count(played));
            assert!(
                granted + there <= burst as i64,
                "more was had than there is: {granted} and {there}"
            );
            assert_eq!(granted + there, burst as i64, "permits were lost");
        })
}

/// Who finds the own part empty takes from the sibling; each permit is had once.
fn siblings(run: &mut Run) {
    let both: &[[&[Deed]; 2]] = &[
        [&[], &[acquire(0, 1, 0), acquire(0, 1, 0)]],
        [&[], &[acquire(0, 1, 0)]],
    ];
    standing(2, both).explore_rules(run);
    let both: &[[&[Deed]; 2]] = &[
        [&[], &[acquire(0, 1, 0), acquire(0, 1, 0)]],
        [&[], &[acquire(1, 1, 0), acquire(1, 1, 0)]],
    ];
    standing(3, both).explore_rules(run);
}

/// Requests for more than a part has, against each other and against one permit: all or nothing, and what could
/// not be used is there again.
fn several(run: &mut Run) {
    let casts: [[&[Deed]; 2]; 4] = [
        [&[acquire(0, 2, 0)], &[acquire(1, 2, 0)]],
        [&[acquire(0, 2, 0)], &[acquire(0, 2, 0)]],
        [&[acquire(0, 2, 0)], &[acquire(1, 1, 0)]],
        [&[acquire(0, 2, 0)], &[acquire(0, 1, 0), acquire(0, 1, 0)]],
    ];
    for [one, other] in casts {
        standing(2, &[[&[], one], [&[], other]]).explore_rules(run);
    }
    standing(4, &[[&[], &[acquire(0, 3, 0)]], [&[], &[acquire(1, 3, 0)]]]).explore_rules(run);
}

/// A request that will fail; and somebody who gives back to its part, waits, and takes as much as makes the
/// word look untouched. At the tick at which that one takes, no more is had than a burst.
fn comes_back_in_between(run: &mut Run) {
    let later = 2 * EACH;
    let others: [&[Deed]; 2] = [
        &[acquire(1, 1, 0), undo(0), acquire(0, 1, later)],
        &[acquire(1, 1, 0), refund(0, 1, 0), acquire(0, 1, later)],
    ];
    for (turn, deeds) in others.into_iter().enumerate() {
        // The grant that comes back is of part 0.
        let before: &[Deed] = &[acquire(0, 1, 0)];
        let mut deeds = deeds.to_vec();
        if turn == 0 {
            // The grant in hand must be that one.
            deeds[0] = Deed::new(
                "acquire 1 from 1 at 0, and keep the old grant",
                |gate, _| match gate.at(Tick::ZERO).from_shard(1).try_acquire() {
                    Ok(granted) => Answer::Granted(granted),
                    Err(denied) => Answer::Denied(denied),
                },
            );
        }
        let play = Play::at(|| gate(4))
            .actor(&[acquire(0, 3, 0)])
            .actor_after(before, &deeds)
            .after(move |gate, _| vec![Answer::Count(gate.at(Tick::from_nanos(later)).available())])
            .rule(move |played| {
                let had = played.all().map(|answer| match answer {
                    Answer::Granted(granted) if granted.at().as_nanos() == later => granted.n(),
                    _ => 0,
                });
                let (had, there) = (had.sum::<u64>() as i64, count(played));
                assert!(
                    had + there <= 4,
                    "more was had than there is: {had} and {there}"
                );
            });
        play.explore_rules(run);
    }
}

/// The same with a reset, which gives everything back.
fn reset_in_between(run: &mut Run) {
    let actors: &[[&[Deed]; 2]] = &[
        [&[], &[acquire(0, 2, 0)]],
        [&[], &[acquire(1, 1, 0), reset()]],
    ];
    let mut play = Play::at(|| gate(2));
    for [before, deeds] in actors {
        play = play.actor_after(before, deeds);
    }
    let play = play
        .after(|gate, _| vec![Answer::Count(gate.at(Tick::ZERO).available())])
        .rule(|played| {
            let (granted, there) = (granted_at(played, 0), count(played));
            assert!(granted + there <= 4, "more was had than a reset allows");
            assert!(there <= 2, "more is there than there can be");
        });
    play.explore_rules(run);
}

/// One stops for ever, before each of its operations in turn: what it had in hand is gone, and no more is had.
fn one_stops(run: &mut Run) {
    let casts: [[&[Deed]; 2]; 3] = [
        [&[acquire(0, 2, 0)], &[acquire(1, 2, 0), acquire(1, 1, 0)]],
        [
            &[acquire(0, 2, 0)],
            &[acquire(1, 1, 0), undo(0), acquire(1, 1, 0)],
        ],
        [
            &[acquire(0, 1, 0), undo(0)],
            &[acquire(0, 2, 0), acquire(0, 1, 0)],
        ],
    ];
    for [stops, goes_on] in casts {
        let play = Play::at(|| gate(2))
            .actor(stops)
            .actor(goes_on)
            .after(|gate, _| vec![Answer::Count(gate.at(Tick::ZERO).available())])
            .rule(|played| {
                let (granted, there) = (granted_at(played, 0), count(played));
                assert!(granted + there <= 2, "more was had than there is");
            });
        play.explore_stopping(run, 0);
    }
}

fn three(run: &mut Run) {
    let three: &[[&[Deed]; 2]] = &[
        [&[], &[acquire(0, 2, 0)]],
        [&[], &[acquire(1, 2, 0)]],
        [&[], &[acquire(1, 1, 0)]],
    ];
    standing(2, three).explore_rules(run);
}

#[test]
fn each_permit_is_had_once() {
    let name = "shards::each_permit_is_had_once";
    model(name, None, siblings);
    stored(name, "more was had than there is", None, siblings);
}

#[test]
fn several_are_had_all_or_none() {
    let name = "shards::several_are_had_all_or_none";
    model(name, Some(3), several);
    mistaken(
        name,
        Mistake::PutsNothingBack,
        "permits were lost",
        Some(4),
        several,
    );
}

#[test]
fn an_equal_word_need_not_be_untouched() {
    let name = "shards::an_equal_word_need_not_be_untouched";
    model(name, Some(2), comes_back_in_between);
    let why = "more was had than there is";
    for mistake in [
        Mistake::IgnoresGiveBacks,
        Mistake::LowersMeanwhile,
        Mistake::PutsBackBlindly,
    ] {
        mistaken(name, mistake, why, Some(2), comes_back_in_between);
    }
}

#[test]
fn a_reset_gives_back_a_burst() {
    model(
        "shards::a_reset_gives_back_a_burst",
        Some(3),
        reset_in_between,
    );
}

#[test]
fn who_stops_stops_nobody() {
    model("shards::who_stops_stops_nobody", Some(2), one_stops);
}

#[test]
fn three_threads() {
    model("shards::three_threads", Some(2), three);
}
