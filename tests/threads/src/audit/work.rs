//! The verbs that threads use on a limiter, and the grants that they record.

use tollgate::TryAcquire;
use tollgate::traits::{DebtLimiter, GiveBackLimiter};
use tollgate_audit::Summary;

use crate::support::verbs::*;
use crate::support::*;

/// The tick at which the clocks start.
pub(super) const START: Tick = tick(1_000_000);

/// A limiter that supports returns and charges.
pub(super) trait TakesBack: GiveBackLimiter + DebtLimiter {}
impl<G: GiveBackLimiter + DebtLimiter> TakesBack for G {}

/// A limiter on a clock that its threads move, with the verbs that it supports.
#[derive(Clone, Copy)]
pub(super) struct Verbs<'g> {
    pub(super) limiter: &'g (dyn TryAcquire<Clock = ManualClock> + Sync),
    pub(super) back: Option<&'g (dyn TakesBack<Clock = ManualClock> + Sync)>,
    pub(super) reset: Option<&'g (dyn Fn() + Sync)>,
}

impl<'g> Verbs<'g> {
    /// A limiter that supports returns and charges, and no resets.
    pub(super) fn of(limiter: &'g (impl TakesBack<Clock = ManualClock> + Sync)) -> Self {
        Self {
            limiter,
            back: Some(limiter),
            reset: None,
        }
    }

    /// The same with resets.
    pub(super) fn with_reset(self, reset: &'g (dyn Fn() + Sync)) -> Self {
        let reset = Some(reset);
        Self { reset, ..self }
    }
}

/// The verbs that threads use beside taking permits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    /// Whether they undo, refund, charge and reset.
    pub(super) back: bool,
    pub(super) charge: bool,
    /// Threads reset once in 64 times this many turns.
    pub(super) rare: Option<u64>,
    /// The most permits in a request.
    pub(super) most: u64,
}

pub(super) const TAKING: Mix = Mix {
    back: false,
    charge: false,
    rare: None,
    most: 4,
};

pub(super) const EVERYTHING: Mix = Mix {
    back: true,
    charge: true,
    rare: Some(20),
    most: 4,
};

impl Verbs<'_> {
    /// The work of one thread. Each turn moves the time by a few nanoseconds, and the thread's tick
    /// is up to `skew` behind or ahead. A thread without skew lets the limiter read the clock.
    fn work(self, turns: u64, skew: u64, mix: Mix, random: &mut Random) -> Log {
        let (limiter, clock) = (self.limiter, self.limiter.clock());
        let mut log = Log::with_capacity(turns as usize);
        for _ in 0..turns {
            clock.advance(Duration::from_nanos(random.below(4)));
            let begun = clock.now();
            let now = begun.as_nanos() + random.below(2 * skew + 1);
            let now = tick(now.saturating_sub(skew));
            let choice = random.below(64);
            let verb = match (choice, self.back) {
                (0, _) if mix.rare.is_some_and(|rare| random.below(rare) == 0) => {
                    if let Some(reset) = self.reset {
                        reset();
                        log.reset(now).during(begun, clock.now());
                    }
                    continue;
                }
                (1, Some(_)) if mix.charge => Verb::Charge(random.below(6)),
                (2 | 3, Some(_)) if mix.back => Verb::Refund(random.below(3)),
                (4..=19, _) => Verb::TakeUpTo(random.below(mix.most + 1)),
                (20, _) => {
                    let verbs = take_verbs!(every! random.below(mix.most));
                    verbs[random.below(verbs.len() as u64) as usize].0
                }
                _ => Verb::Take(random.below(mix.most)),
            };
            let answer = match (self.back, verb) {
                (_, Verb::Take(n)) if skew == 0 => limiter.try_acquire_n(n).into(),
                (None, verb) => ask_at!(limiter, verb, &mut None, now; take_verbs),
                (Some(back), verb) => {
                    ask_at!(back, verb, &mut None, now; take_verbs give_back_verbs debt_verbs)
                }
            };
            match answer {
                Answer::Charged(charged) => log.charged(&charged).during(begun, clock.now()),
                Answer::Returned(n) => log.gave_back(now, n).during(begun, clock.now()),
                Answer::Granted(granted) => {
                    if let Verb::Take(n) = verb {
                        assert_eq!(granted.n(), n);
                    }
                    log.granted(&granted).during(begun, clock.now());
                    if let (Some(limiter), 21.., 0, true) =
                        (self.back, choice, choice % 4, mix.back)
                    {
                        let n = limiter.undo_at(granted, now);
                        log.gave_back(now, n).during(begun, clock.now());
                    }
                }
                _ => {}
            }
        }
        log
    }

    /// Records the grants of this many threads. Later threads have more skew.
    pub(super) fn record(self, threads: u64, turns: u64, mix: Mix) -> Audit {
        let logs = on_threads(0..threads, |id| {
            self.work(turns, 200 * id, mix, &mut Random(id))
        });
        logs.into_iter().collect()
    }
}

#[track_caller]
pub(super) fn kept(history: &Audit, bound: &Bound, of: &str) -> Summary {
    match history.check(bound) {
        Ok(summary) => summary,
        Err(excess) => panic!("{of}: {excess}"),
    }
}
