//! Bans of a map's keys: a decision that begins after a ban grants nothing before the ban's end,
//! and nothing is given back before the grant that ends the ban. Earlier grants stay counted.

use tollgate::Overflow;
use tollgate::sync::model::Fault;
use tollgate_loom_tests::{Answer, Run, model, with_fault};

use crate::keyed_map::{
    Action, TOO_MUCH, count, counting_loads, granted, purge, scenario, take, tick, visit,
};

fn ban(key: u64, until: u64) -> Action {
    Action::new(format!("ban {key} until {until}"), move |limiter, _| {
        Answer::Is(limiter.key(&key).at(tick(0)).ban(tick(until)).is_ok())
    })
}

fn refund(key: u64, n: u64, at: u64) -> Action {
    Action::new(format!("refund {n} of {key} at {at}"), move |limiter, _| {
        Answer::Returned(limiter.key(&key).at(tick(at)).refund(n))
    })
}

/// Another thread takes a permit, or gives some back, while the key is banned until 20.
fn others_meanwhile(run: &mut Run) {
    let banned = |others: &[Action]| {
        let after = |limiter: &std::sync::Arc<crate::keyed_map::Tested>, _: &mut [()]| {
            let there = [19, 30].map(|at| limiter.key(&1).at(tick(at)).available());
            there.map(Answer::Count).into()
        };
        let bans = scenario(2, Overflow::Deny).after(after).rule(|played| {
            let there: Vec<u64> = played.after.iter().map(count).collect();
            let taken = granted(&played.answers[0]);
            assert!(
                taken == 0 && there == [0, 1],
                "{TOO_MUCH}: {taken}, {there:?}"
            );
        });
        let bans = bans.actor_after(&[take(1, 1, 0)], &[ban(1, 20), take(1, 1, 0)]);
        bans.actor(others)
    };
    banned(&[take(1, 1, 0)]).explore_rules(run);
    banned(&[refund(1, 2, 0)]).explore_rules(run);
    banned(&[purge(1, 0)]).explore_rules(run);
}

/// The ban until 20 is over at 30, and a permit is available. Another thread with an earlier tick
/// returns permits. That has no effect before the grant that ends the ban.
fn the_first_grant(run: &mut Run) {
    let over = scenario(3, Overflow::Deny).rule(|played| {
        for answer in &played.answers[0][1..] {
            let right = matches!(answer, Answer::Granted(granted) if granted.remaining() == 0);
            assert!(right, "{TOO_MUCH}: {answer}");
        }
    });
    let begun = [take(1, 1, 0), ban(1, 20)];
    let over = over.actor_after(&begun, &[visit(2), take(1, 1, 30)]);
    let over = over.actor(&[visit(3), refund(1, 2, 0)]);
    counting_loads(run, |run| over.explore_rules(run));
}

#[test]
fn no_key_gets_anything_while_it_is_banned() {
    let name = "keyed_map_bans::no_key_gets_anything_while_it_is_banned";
    model(name, Some(2), others_meanwhile);
    let (fault, bound) = (Fault::TakesOutMoving, Some(2));
    with_fault("keyed_map_bans", fault, TOO_MUCH, bound, others_meanwhile);
}

#[test]
fn nothing_comes_back_before_the_grant_that_ends_a_ban() {
    let name = "keyed_map_bans::nothing_comes_back_before_the_grant_that_ends_a_ban";
    model(name, Some(3), the_first_grant);
    let (fault, bound) = (Fault::EndsTheBanFirst, Some(3));
    with_fault("keyed_map_bans", fault, TOO_MUCH, bound, the_first_grant);
}
