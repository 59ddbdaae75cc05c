//! The line before a composition of a rate and a concurrency limit. Actors concurrently wait, try,
//! give up, and leave. No caller in line is overtaken or forgotten, and nothing is lost.

use std::future::{Future, Pending, pending};

use tollgate::clock::Timer;
use tollgate::compose::{AllDenied, AllGranted, Line};
use tollgate::concurrency::ConcurrencyGuard;
use tollgate_loom_tests::Polled;
use tollgate_loom_tests::prelude::*;

type Members = (Limiter<TokenBucket, ManualClock>, Arc<Concurrency>);
type Limits = Arc<All<Members, ManualClock>>;
type Grant = AllGranted<Limits, Members, ManualClock>;

/// A line before a rate and a limit of one caller inside.
struct Tested {
    inside: Arc<Concurrency>,
    line: Line<Limits>,
}

/// The rate has `permits`, and gets no more.
fn tested(permits: u64) -> Arc<Tested> {
    bounded(permits, u64::MAX)
}

/// The same. Callers in line wait for at most `waiting` permits.
fn bounded(permits: u64, waiting: u64) -> Arc<Tested> {
    let bucket = TokenBucket::new(Quota::per_second(1).burst(2)).expect("a quota");
    let rate = Limiter::with_clock(bucket, ManualClock::new());
    rate.charge(2 - permits);
    let inside = Arc::new(Concurrency::new(1).expect("a limit"));
    let all = All::new((rate, Arc::clone(&inside))).expect("two limits");
    let line = Line::new(Arc::new(all)).max_waiting_permits(waiting);
    Arc::new(Tested { inside, line })
}

impl Tested {
    /// It, and a caller from outside that is inside.
    fn held(self: Arc<Self>) -> (Arc<Self>, ConcurrencyGuard<Arc<Concurrency>>) {
        let held = self.inside.try_enter_owned(1).expect("room");
        (self, held)
    }

    fn rate(&self) -> u64 {
        self.line.inner().inner().0.available()
    }

    /// Checks that no caller is left, and returns how many permits the rate has.
    fn check_empty(&self) -> u64 {
        let waiting = (self.line.waiting(), self.inside.waiting());
        let actual = (waiting, self.inside.inside());
        assert_eq!(actual, ((0, 0), 0), "something was lost");
        assert_eq!(self.line.waiting_permits(), 0, "permits of none wait");
        self.rate()
    }
}

/// A timer whose sleeps never end.
struct Stopped;

impl Timer for Stopped {
    type Sleep = Pending<()>;

    fn sleep(&self, _: Duration) -> Pending<()> {
        pending()
    }
}

/// A caller that is polled by hand.
struct Caller(Polled<dyn Future<Output = Result<Grant, AllDenied>> + Send>);

impl Caller {
    /// Polls once.
    fn new(tested: &Arc<Tested>) -> Self {
        Self::of(tested, 1)
    }

    /// The same, for `n` permits of the rate.
    fn of(tested: &Arc<Tested>, n: u64) -> Self {
        let tested = Arc::clone(tested);
        let acquire = async move { tested.line.with_timer(Stopped).acquire_each([n, 1]).await };
        let caller = Self(Polled::new(Box::pin(acquire)));
        // A denial for another reason panics.
        let _ = caller.is_refused();
        caller
    }

    /// Returns whether the line was full. It is not denied for another reason.
    fn is_refused(&self) -> bool {
        match &self.0.answer {
            Some(Err(AllDenied::LineFull { .. })) => true,
            Some(Err(denied)) => panic!("{denied}"),
            Some(Ok(_)) | None => false,
        }
    }

    /// Polls for as long as it is woken, and says whether it is served.
    fn is_served(&mut self) -> bool {
        while self.0.answer.is_none() && self.0.wake_flag.take() {
            self.0.poll();
        }
        !self.is_refused() && self.0.answer.is_some()
    }
}

/// Serves these callers one after the other, in any order.
fn serve(mut callers: Vec<Caller>) {
    while !callers.is_empty() {
        let served = callers.iter_mut().position(Caller::is_served);
        // The grant is dropped, which leaves.
        drop(callers.swap_remove(served.expect("a caller in line was forgotten")));
    }
}

/// A caller from outside leaves while a caller comes into the line.
fn leave_against_enter(run: &mut Run) {
    run.explore(|layout| {
        let (tested, held) = tested(2).held();
        let other = Arc::clone(&tested);
        let ((), caller) = layout.both(move || drop(held), move || Caller::new(&other));
        serve(vec![caller]);
        assert_eq!(tested.check_empty(), 1, "permits were lost");
    });
}

/// The first in line is served and leaves, while another caller comes.
fn turn_against_enter(run: &mut Run) {
    run.explore(|layout| {
        let (tested, held) = tested(2).held();
        let mut first = Caller::new(&tested);
        let other = Arc::clone(&tested);
        let is_served = move || {
            drop(held);
            assert!(first.is_served(), "a caller in line was forgotten");
            drop(first);
        };
        let ((), second) = layout.both(is_served, move || Caller::new(&other));
        serve(vec![second]);
        assert_eq!(tested.check_empty(), 0, "permits were lost");
    });
}

/// A caller from outside leaves while the first in line gives up. It may have been let in already.
fn leave_against_give_up(run: &mut Run) {
    run.explore(|layout| {
        let (tested, held) = tested(2).held();
        let (first, second) = (Caller::new(&tested), Caller::new(&tested));
        layout.both(move || drop(held), move || drop(first));
        serve(vec![second]);
        assert_eq!(tested.check_empty(), 1, "permits were lost");
    });
}

/// The first in line is let in by a caller that leaves, but the rate has nothing. Meanwhile another
/// caller from outside begins to wait for the room.
fn room_that_does_not_help(run: &mut Run) {
    run.explore(|layout| {
        let (tested, held) = tested(0).held();
        let mut first = Caller::new(&tested);
        let other = Arc::clone(&tested);
        let is_let_in = move || {
            drop(held);
            assert!(!first.is_served());
            first
        };
        let enters = move || drop(other.inside.try_enter_owned(1));
        let (first, ()) = layout.both(is_let_in, enters);
        assert_eq!(tested.inside.inside(), 0, "a caller sleeps inside");
        assert_eq!(tested.line.waiting(), 1);
        drop(first);
        assert_eq!(tested.check_empty(), 0, "permits were made");
    });
}

/// The first in line sleeps until the rate has two permits. Two callers come, one of which does not
/// wait.
fn try_against_enter(run: &mut Run) {
    run.explore(|layout| {
        let tested = tested(1);
        let first = Caller::of(&tested, 2);
        assert!(first.0.answer.is_none());
        let (one, other) = (Arc::clone(&tested), Arc::clone(&tested));
        let (passes, second) = layout.both(
            move || one.line.try_acquire().is_ok(),
            move || Caller::new(&other),
        );
        let passed = passes || second.0.answer.is_some();
        assert!(!passed, "a caller in line was overtaken");
        drop(first);
        serve(vec![second]);
        assert_eq!(tested.check_empty(), 0, "permits were lost");
    });
}

/// The only caller that may wait gives up while another one comes.
fn give_up_against_enter(run: &mut Run) {
    run.explore_all(vec!["refused", "waits"], move |layout| {
        let (tested, held) = bounded(2, 1).held();
        let first = Caller::new(&tested);
        let other = Arc::clone(&tested);
        let ((), waits) = layout.both(
            move || drop(first),
            move || {
                let caller = Caller::new(&other);
                let waiting = other.line.waiting();
                assert!(waiting <= 1, "a line holds more than its bound");
                caller
            },
        );
        let said = match waits.is_refused() {
            true => "refused",
            false => "waits",
        };
        let waiting = tested.line.waiting() as u64;
        let permits = tested.line.waiting_permits();
        assert_eq!(permits, waiting, "permits of none wait");
        drop((held, waits));
        assert_eq!(tested.check_empty(), 2, "permits were lost");
        said
    });
}

/// The first in line gives up and wakes the next one, which gives up and comes again for as many
/// permits as both waited for.
fn give_up_and_wake(run: &mut Run) {
    run.explore(|layout| {
        let (tested, held) = bounded(2, 2).held();
        let (first, second) = (Caller::new(&tested), Caller::new(&tested));
        let other = Arc::clone(&tested);
        let comes_again = move || {
            // Loom does not track the flag. It does track this load.
            let _ = other.line.waiting_permits();
            let was_woken = second.0.wake_flag.take();
            drop(second);
            was_woken.then(|| Caller::of(&other, 2))
        };
        let ((), again) = layout.both(move || drop(first), comes_again);
        let is_refused = again.as_ref().is_some_and(|caller| caller.is_refused());
        assert!(!is_refused, "a caller was woken too early");
        drop((held, again));
        assert_eq!(tested.check_empty(), 2, "permits were lost");
    });
}

/// Two callers come into a line that holds one.
fn enter_against_enter(run: &mut Run) {
    run.explore(|layout| {
        let (tested, held) = bounded(2, 1).held();
        let enter = || {
            let tested = Arc::clone(&tested);
            actor(move || Caller::new(&tested))
        };
        let callers = layout.act(vec![enter(), enter()]);
        let refused = callers.iter().filter(|caller| caller.is_refused()).count();
        assert_eq!(refused, 1, "a line holds more than its bound");
        drop(held);
        let served = callers.into_iter().filter(|caller| !caller.is_refused());
        serve(served.collect());
        assert_eq!(tested.check_empty(), 1, "permits were lost");
    });
}

/// Threads that sleep: loom would report one that is never woken.
fn threads_sleep(run: &mut Run) {
    run.explore(|layout| {
        let (tested, held) = tested(2).held();
        let (one, other) = (Arc::clone(&tested), Arc::clone(&tested));
        let wait = move || one.line.blocking_acquire().is_ok();
        let leave = move || {
            drop(held);
            other.line.blocking_acquire().is_ok()
        };
        assert_eq!(layout.both(wait, leave), (true, true));
        assert_eq!(tested.check_empty(), 0, "permits were lost");
    });
}

#[test]
fn no_caller_in_line_is_forgotten() {
    let why = "a caller in line was forgotten";
    model("line: one leaves, one comes", Some(3), leave_against_enter)
        .finds([Fault::LetsNoneIn], why)
        .finds([Fault::Blind(source::wait())], why);
    let name = "line: one is served, one comes";
    model(name, Some(3), turn_against_enter).finds([Fault::PassesNoTurn], why);
    model("line: two sleep in turn", Some(2), threads_sleep);
}

#[test]
fn a_caller_in_line_that_gives_up_loses_nothing() {
    let name = "line: one leaves, one gives up, one waits";
    let why = "a caller in line was forgotten";
    model(name, Some(3), leave_against_give_up).finds([Fault::KeepsWhatWasHanded], why);
}

#[test]
fn the_first_in_line_sleeps_outside() {
    let name = "line: one leaves, the rate has nothing";
    model(name, Some(3), room_that_does_not_help)
        .finds([Fault::SleepsInside], "a caller sleeps inside");
}

#[test]
fn no_caller_in_line_is_overtaken() {
    let name = "line: one waits, one tries, one comes";
    model(name, Some(3), try_against_enter)
        .finds([Fault::PassesTheLine], "a caller in line was overtaken");
}

#[test]
fn a_line_never_holds_more_than_its_bound() {
    model("line: two come, one may wait", Some(3), enter_against_enter)
        .stored("a line holds more than its bound");
}

#[test]
fn a_caller_in_line_that_gives_up_makes_room() {
    let name = "line: one gives up, one comes, one may wait";
    model(name, Some(3), give_up_against_enter)
        .finds([Fault::KeepsItsPermitsInLine], "permits of none wait");
    let name = "line: one gives up, the next one wakes and comes again";
    model(name, Some(3), give_up_and_wake)
        .finds([Fault::WakesTooEarly], "a caller was woken too early");
}
