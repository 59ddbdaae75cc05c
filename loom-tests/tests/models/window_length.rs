//! The length of a window that a hit opens, and the weight of the previous window in a sliding one.
//! The models find errors in either.

use std::num::NonZeroU64;

use tollgate_audit::Bounded;
use tollgate_loom_tests::Wrong;
use tollgate_loom_tests::prelude::*;

const LIMIT: u64 = 2;

/// Two permits in 8 ns from the first hit, whose tick is rounded to a multiple of 4: up, or down in
/// the faulty version. The word is the window's end, with the count in its last eight bits.
struct FirstHit {
    down: bool,
}

impl FirstHit {
    fn view(&self, word: u64, now: Tick) -> (u64, u64) {
        let (end, taken, now) = (word >> 8, word & 255, now.as_nanos());
        if now < end && taken > 0 {
            return (end, taken);
        }
        let parts = if self.down { now / 4 } else { now.div_ceil(4) };
        (end.max(parts * 4 + 8), 0)
    }
}

impl Algorithm for FirstHit {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let (end, taken) = self.view(word, now);
        if taken + n > LIMIT {
            return Err(Denied::later(
                n,
                Tick::from_nanos(end).saturating_since(now),
            ));
        }
        let next = if n == 0 { word } else { (end << 8) + taken + n };
        Ok((next, Granted::new(n, now)))
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        LIMIT.saturating_sub(self.view(word, now).1)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.view(word, now).1 == 0
    }
}

/// One thread hits at a tick, and another a nanosecond less than a period later. Both are in the
/// window of whichever comes first.
fn less_than_a_period_apart<A: suite::Subjected>(
    subject: &Subject<A>,
    ticks: [u64; 2],
    run: &mut Run,
) {
    let [one, other] = ticks.map(|tick| [(Verb::take_up_to(LIMIT), Tick::from_nanos(tick))]);
    let scenario = subject.scenario(&[], &[&one, &other]).rule(|outcome| {
        let actual = outcome.granted();
        assert_eq!(actual, LIMIT, "two windows in less than a period");
    });
    scenario.explore(run);
}

#[test]
fn a_window_is_never_shorter_than_its_period() {
    model("window_length::first hit, 99 ns of 100", None, |run| {
        let subject = samples::windows::first_hit(words::cell);
        less_than_a_period_apart(&subject, [7, 106], run);
    });
    let of = |down| Subject::new(move || FirstHit { down });
    model("window_length::rounded up", None, |run| {
        less_than_a_period_apart(&of(false), [5, 12], run);
    });
    let (name, why) = ("window_length::rounded down", "two windows in less");
    broken(name, why, None, |run| {
        less_than_a_period_apart(&of(true), [5, 12], run);
    });
}

/// Two permits of a window are taken 99 ns after it began. When the next window begins, at 200,
/// another caller takes one of its permits, and a caller that is late by a nanosecond takes the
/// other two. If those two counted at the late caller's own tick, four permits would count at that
/// tick.
fn late_by_a_nanosecond<A: suite::Subjected>(subject: &Subject<A>, run: &mut Run) {
    let take = |n, tick| (Verb::take(n), Tick::from_nanos(tick));
    let actors: [&[_]; 2] = [&[take(1, 200)], &[take(2, 199)]];
    let scenario = subject.scenario(&[take(1, 100), take(2, 199)], &actors);
    scenario.explore(run);
}

#[test]
fn a_late_permit_counts_in_the_window_it_is_taken_from() {
    let windows = FixedWindow::new(Quota::per(3, Duration::from_nanos(100))).expect("a quota");
    let windows = windows.opened_by_first_hit().expect("it fits");
    let subject = Subject::new(move || windows).promising(windows.bound());
    subject.holds(
        "window_length::late by a nanosecond",
        None,
        late_by_a_nanosecond,
    );
    let (name, why) = (
        "window_length::late, at its own tick",
        "more than was promised",
    );
    // The window that rounds, but counts a late caller at its own tick.
    let counts_late_ones = |windows: &FixedWindow, word, now, n| {
        let (next, granted) = windows.step(word, now, n)?;
        let granted = Granted::new(n, now)
            .with_remaining(granted.remaining(), NonZeroU64::MIN)
            .with_mark(next);
        Ok((next, granted))
    };
    let wrong = move || Wrong(windows, counts_late_ones);
    let subject = Subject::new(wrong).promising(windows.bound());
    subject.fails(name, why, None, late_by_a_nanosecond);
}

/// A greedy bucket of four that was opened at 7, which is rounded up to seven and a fraction, so it
/// gets three permits at once at 108. Three are taken right before 108 and one at 108. A late
/// caller, to whose clock the refill has not come, takes two more. These count at the tick of the
/// refill; otherwise five would be taken at once.
#[test]
fn a_late_permit_counts_when_it_came() {
    let intervals = Intervals::new(Quota::per(3, Duration::from_nanos(100)).burst(4));
    let greedy = intervals.and_then(|intervals| intervals.greedy());
    let greedy = greedy.expect("it fits");
    let take = |n, tick| (Verb::take(n), Tick::from_nanos(tick));
    model("window_length::late for a refill", None, |run| {
        let subject = Subject::new(move || greedy).promising(greedy.bound());
        let actors: [&[_]; 2] = [&[take(1, 108)], &[take(2, 107)]];
        let scenario = subject.scenario(&[take(1, 7), take(3, 107)], &actors);
        let told = [
            "1 at 108, 2 left | 2 at 108, 0 left",
            "1 at 108, 2 left | denied for 1",
        ];
        scenario.explore_to(run, &told);
    });
}

/// Broken: a sliding window in which the previous window has no weight.
struct Forgets(SlidingWindow);

impl Forgets {
    /// Three in 8 ns: two counts of three bits.
    fn seen(word: u64, now: Tick) -> u64 {
        if word >> 6 < now.as_nanos() / 8 {
            0
        } else {
            word
        }
    }
}

impl Algorithm for Forgets {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let (next, granted) = self.0.step(Self::seen(word, now), now, n)?;
        Ok((if n == 0 { word } else { next }, granted))
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(Self::seen(word, now), now)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(Self::seen(word, now), now)
    }
}

#[test]
fn a_sliding_window_that_forgets_the_one_before() {
    let quota = Quota::per(3, Duration::from_nanos(8));
    let windows = SlidingWindow::new(quota).expect("a quota");
    let name = "window_length::sliding, forgets the window before";
    let subject = Subject::new(move || Forgets(windows)).promising(windows.bound());
    let subject = subject.at(15, 18);
    let why = "more than was promised";
    subject.fails(name, why, Some(3), suite::the_bound_at_different_ticks);
}
