//! Several lines before the same members.

use tollgate::compose::Line;

use super::{Tested, rate};
use crate::support::*;

/// The first callers of this many lines wait for members that are busy. The members get room in
/// this order. Returns how often the callers were polled after that. `pick` gets the number of
/// callers that were woken, and chooses which of them is polled next.
fn polls<const ROOMS: usize>(
    lines: usize,
    order: [usize; ROOMS],
    mut pick: impl FnMut(usize) -> usize,
) -> usize {
    let clock = ManualClock::new();
    let rate = rate(Quota::per_second(100).burst(50), &clock);
    let rooms = [(); ROOMS].map(|()| Concurrency::new(1).expect("a limit"));
    let all = All::new((&rate, &rooms)).expect("limits of one clock");
    let lines: Vec<_> = (0..lines).map(|_| Line::new(&all)).collect();
    let mut guards = rooms.each_ref().map(|room| room.try_enter().ok());
    let mut callers = Vec::new();
    for line in &lines {
        let clock = &clock;
        let acquire = async move { line.with_timer(clock).acquire().await.is_ok() };
        let mut caller = Polled::new(acquire);
        assert!(caller.poll().is_pending());
        callers.push(caller);
    }
    let mut polls = 0;
    for member in order {
        guards[member] = None;
        while polls < 10_000 {
            let woken = (0..callers.len()).filter(|index| callers[*index].was_woken());
            let woken: Vec<_> = woken.collect();
            if woken.is_empty() {
                break;
            }
            let index = woken[pick(woken.len())];
            polls += 1;
            if callers[index].poll().is_ready() {
                drop(callers.remove(index));
            }
        }
    }
    assert_eq!(callers.len(), 0, "callers still wait after {polls} polls");
    polls
}

#[test]
fn callers_of_several_lines_sleep_while_a_member_is_busy() {
    for lines in 1..=6 {
        for order in ORDERS {
            for seed in 0..50_u64 {
                let mut random = seed;
                let polls = polls(lines, order, |woken| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (random >> 33) as usize % woken
                });
                assert!(polls <= 20 * lines, "{lines} lines, {order:?}: {polls}");
            }
        }
    }
}

#[test]
fn a_caller_that_was_let_in_reads_the_room_that_is_left() {
    let tested = Tested::new(Quota::per_second(100).burst(50), 10);
    let guard = tested.inside.try_enter_n(10).expect("it is empty");
    let mut caller = tested.waiting(1);
    drop(guard);
    let granted = caller.granted();
    let remaining = granted.member(1).map(|part| part.remaining());
    assert_eq!((remaining, granted.remaining()), (Some(9), 9));
}
