//! Runs a composition, and the twins of its members by their own verbs, and compares all answers.

use tollgate::TryAcquire;
use tollgate::compose::{AllDenied, AllGranted, Members};
use tollgate::traits::{DebtLimiter, GiveBackLimiter};

use super::limits::{EACH, Kept, Limit, Limits, Pick};
use crate::support::*;

/// What becomes of a grant.
#[derive(Debug)]
pub(super) enum End {
    Drop,
    Undo,
    Settle(Vec<u64>),
}

/// A limit, and the numbers of the members that are this limit.
struct Twin<'a> {
    limit: Limit<'a>,
    members: Vec<usize>,
}

impl Twin<'_> {
    fn sum(&self, costs: &[u64]) -> u64 {
        let costs = self.members.iter().map(|member| costs[*member]);
        costs.fold(0, u64::saturating_add)
    }
}

/// Counts what a run met.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) operations: u64,
    pub(super) granted: u64,
    pub(super) later: u64,
    pub(super) busy: u64,
    pub(super) never: u64,
    pub(super) undone: u64,
    pub(super) returned: u64,
    pub(super) charged: u64,
    pub(super) several_deny: u64,
}

type Answer<'g, M> = AllGranted<&'g All<M, ManualClock>, M, ManualClock>;

pub(super) struct Run<'a> {
    pub(super) clock: &'a ManualClock,
    pub(super) members: &'a Limits,
    pub(super) twins: &'a Limits,
    pub(super) picks: &'a [Pick],
}

/// How long a denial lasts, for comparison.
fn length(denied: &Denied) -> (u8, Duration) {
    match (denied.is_permanent(), denied.retry_after()) {
        (true, _) => (2, Duration::ZERO),
        (false, None) => (1, Duration::ZERO),
        (false, Some(wait)) => (0, wait),
    }
}

impl Run<'_> {
    /// Compares this many operations. `end` ends a grant, and returns the permits that came back,
    /// were lost and were charged.
    pub(super) fn compare<'g, M: Members<ManualClock>>(
        &self,
        all: &'g All<M, ManualClock>,
        operations: u64,
        random: &mut Random,
        seen: &mut Seen,
        end: impl Fn(Answer<'g, M>, &End, Tick) -> Option<[u64; 3]>,
    ) {
        let mut twins: Vec<Twin<'_>> = Vec::new();
        for (member, pick) in self.picks.iter().enumerate() {
            let first = self.picks.iter().position(|other| other == pick);
            match twins.iter_mut().find(|twin| Some(twin.members[0]) == first) {
                Some(twin) => twin.members.push(member),
                None => twins.push(Twin {
                    limit: self.twins.limit(*pick),
                    members: vec![member],
                }),
            }
        }
        let twins = &twins[..];
        assert_eq!(all.members(), self.picks.len());
        let mut kept: Vec<(Answer<'g, M>, Vec<Kept>, Vec<u64>)> = Vec::new();
        for _ in 0..operations {
            seen.operations += 1;
            let now = self.moment(random);
            match random.below(8) {
                0..=4 => {
                    let costs = self.costs(random);
                    let denials = denials(twins, &costs, now);
                    assert_eq!(all.at(now).check_each(&costs).is_ok(), denials.is_empty());
                    let answer = ask(all, &costs, now, random);
                    match answer {
                        Ok(granted) => {
                            assert!(denials.is_empty(), "granted, but {denials:?}");
                            let takes = twins.iter().map(|twin| {
                                let taken = twin.limit.take(twin.sum(&costs), now);
                                is_same(&granted, twin.members[0], &taken, twin);
                                taken
                            });
                            let takes: Vec<_> = takes.collect();
                            seen.granted += 1;
                            kept.push((granted, takes, costs));
                        }
                        Err(denied) => {
                            self.is_right(all, twins, &denied, &denials, &costs, now);
                            seen.several_deny += u64::from(denials.len() > 1);
                            let denied = denied.denied().expect("a member");
                            seen.later += u64::from(denied.retry_after().is_some());
                            seen.never += u64::from(denied.is_permanent());
                            let busy = matches!(denied, Denied::Busy { .. });
                            seen.busy += u64::from(busy);
                        }
                    }
                }
                5 => self.change(random, now),
                _ if kept.is_empty() => {}
                _ => {
                    let which = random.below(kept.len() as u64) as usize;
                    let (granted, takes, costs) = kept.swap_remove(which);
                    let how = match random.below(4) {
                        0 => End::Drop,
                        1 | 2 => End::Undo,
                        _ => {
                            let actual = |n: &u64| random.below(n.saturating_add(3).min(9));
                            End::Settle(costs.iter().map(actual).collect())
                        }
                    };
                    let ended = end(granted, &how, now);
                    let limits = twins.iter().zip(takes);
                    if let Some(ended) = ended {
                        let mut sum = [0; 3];
                        for (twin, taken) in limits {
                            let [returned, lost, charged] = match &how {
                                End::Drop => [0; 3],
                                End::Undo => [twin.limit.undo(taken, now), 0, 0],
                                End::Settle(actual) => {
                                    twin.limit.settle(taken, twin.sum(actual), now)
                                }
                            };
                            sum = [sum[0] + returned, sum[1] + lost, sum[2] + charged];
                        }
                        assert_eq!(ended, sum, "{how:?}");
                        seen.undone += u64::from(matches!(how, End::Undo));
                        seen.returned += sum[0];
                        seen.charged += sum[2];
                    }
                }
            }
            self.is_equal(all, twins, now);
            if kept.len() > 6 {
                drop(kept.remove(0));
            }
        }
    }

    /// Sets the clock: often to the same tick or soon after, sometimes back.
    fn moment(&self, random: &mut Random) -> Tick {
        let now = self.clock.now().as_nanos();
        let now = match random.below(16) {
            0..=5 => now,
            6..=9 => now + random.below(20),
            10..=12 => now + random.below(100),
            13 => now + random.below(1_000),
            14 => now + 1,
            _ => now.saturating_sub(random.below(150)),
        };
        self.clock.set(tick(now));
        tick(now)
    }

    fn costs(&self, random: &mut Random) -> Vec<u64> {
        let same = random.one_in(2).then(|| random.below(4));
        let cost = |_: &Pick| match random.below(60) {
            0 => random.next(),
            1 => u64::MAX,
            2..=6 => random.below(12),
            _ => random.below(3),
        };
        match same {
            Some(n) => vec![n; self.picks.len()],
            None => self.picks.iter().map(cost).collect(),
        }
    }

    /// Uses a member, and its twin, beside the composition.
    fn change(&self, random: &mut Random, now: Tick) {
        let choice = random.below(11);
        let n = random.below(4);
        let key = random.below(2);
        let word = random.below(EACH as u64) as usize;
        let changed = [self.members, self.twins].map(|limits| match choice {
            0 => limits.words[word].charge_at(n, now).n(),
            1 => limits.words[word].refund_at(n, now),
            2 => limits.words[word].take_up_to_at(n, now).n(),
            3 => {
                let quota = Quota::per(1 + n, Duration::from_nanos(50)).burst(4 + n);
                let keep = [Keep::AsIs, Keep::Scaled, Keep::Used, Keep::Fresh][n as usize];
                u64::from(limits.adjustable.at(now).set_quota(quota, keep).is_ok())
            }
            4 => limits.sharded.take_up_to_at(n, now).n(),
            5 => limits.slotted.take_up_to_at(n, now).n(),
            6 => limits.keys.key(&key).take_up_to_at(n, now).n(),
            7 => limits.other_keys.key(&key).take_up_to_at(n, now).n(),
            8 => limits.log.take_up_to_at(n, now).n(),
            9 if n < 2 => u64::from(limits.keys.key(&key).remove()),
            9 => u64::from(limits.other_keys.key(&key).remove()),
            _ => limits.inside.set_limit(n + 3).expect("a limit"),
        });
        assert_eq!(changed[0], changed[1], "choice {choice}");
    }

    /// Checks a denial against those of the twins.
    fn is_right<M: Members<ManualClock>>(
        &self,
        all: &All<M, ManualClock>,
        twins: &[Twin<'_>],
        answer: &AllDenied,
        denials: &[(usize, Denied)],
        costs: &[u64],
        now: Tick,
    ) {
        let (member, denied) = (answer.member(), answer.denied());
        let longest = denials.iter().map(|(_, denied)| length(denied)).max();
        let longest = longest.expect("no twin denies");
        // Of members that deny alike, the first is told.
        let first = denials.iter().find(|(_, denied)| length(denied) == longest);
        let first = first.map(|(twin, denied)| (Some(*twin), Some(*denied)));
        assert_eq!(first, Some((member, denied)), "{denials:?}");
        assert_eq!(answer.is_permanent(), longest.0 == 2);
        let Some(wait) = answer.retry_after() else {
            return;
        };
        let [before, due] =
            [wait - Duration::from_nanos(1), wait].map(|wait| now.saturating_add(wait));
        assert_eq!(self::denials(twins, costs, due), [], "at {due:?}");
        assert_ne!(self::denials(twins, costs, before), [], "at {before:?}");
        assert_eq!(all.at(due).check_each(costs), Ok(()));
        assert!(all.at(before).check_each(costs).is_err());
    }

    /// Compares the members with their twins, and the composition's queries with theirs.
    fn is_equal<M: Members<ManualClock>>(
        &self,
        all: &All<M, ManualClock>,
        twins: &[Twin<'_>],
        now: Tick,
    ) {
        let mut least = u64::MAX;
        for twin in twins {
            let member = twin.members[0];
            let limit = self.members.limit(self.picks[member]);
            let available = twin.limit.available(now);
            assert_eq!(limit.available(now), available, "member {member}");
            let actual = limit.check(1, now);
            assert_eq!(actual, twin.limit.check(1, now), "member {member}");
            least = least.min(available / twin.members.len() as u64);
        }
        assert_eq!(all.available(), least);
        assert_eq!(all.at(now).available(), least);
        for n in [0, 1, 3] {
            let denials = denials(twins, &vec![n; self.picks.len()], now);
            let wait = denials.iter().max_by_key(|(_, denied)| length(denied));
            let wait = wait.map_or(Some(Duration::ZERO), |(_, denied)| denied.retry_after());
            assert_eq!(all.time_until(n), wait, "for {n}");
            assert_eq!(all.check_n(n).is_ok(), denials.is_empty(), "for {n}");
        }
    }
}

/// Returns which twins deny, each by the number of its first member.
fn denials(twins: &[Twin<'_>], costs: &[u64], now: Tick) -> Vec<(usize, Denied)> {
    let denials = twins.iter().filter_map(|twin| {
        let denied = twin.limit.check(twin.sum(costs), now).err()?;
        Some((twin.members[0], denied))
    });
    denials.collect()
}

/// Asks a composition by one of the verbs.
fn ask<'g, M: Members<ManualClock>>(
    all: &'g All<M, ManualClock>,
    costs: &[u64],
    now: Tick,
    random: &mut Random,
) -> Result<Answer<'g, M>, AllDenied> {
    let n = costs[0];
    let is_same = costs.iter().all(|cost| *cost == n);
    match (random.below(4), is_same) {
        (0, true) if n == 1 => all.try_acquire(),
        (0 | 1, true) => all.try_acquire_n(n),
        (2, true) => all.at(now).try_acquire_n(n),
        (3, _) => all.at(now).try_acquire_each(costs),
        _ => all.try_acquire_each(costs),
    }
}

/// Compares the grant of a member with that of its twin.
fn is_same<M: Members<ManualClock>>(
    granted: &Answer<'_, M>,
    member: usize,
    taken: &Kept,
    twin: &Twin<'_>,
) {
    let part = granted.member(member).expect("the member's grant");
    match taken {
        Kept::Granted(taken) | Kept::Logged(taken) => {
            assert_eq!(part, taken.info(), "member {member}")
        }
        Kept::Inside(guard) => {
            assert_eq!(part.n(), guard.n());
            assert_eq!(part.remaining(), twin.limit.available(part.at()));
        }
    }
    for again in &twin.members[1..] {
        assert_eq!(granted.member(*again), None);
    }
    // A log's grant does not say what is left; the composition asks the log.
    let left = match taken {
        Kept::Logged(_) => twin.limit.available(part.at()),
        Kept::Granted(_) | Kept::Inside(_) => part.remaining(),
    };
    assert!(granted.remaining() <= left);
    assert!(granted.reset_after() >= part.reset_after());
    assert!(granted.delay() >= part.delay());
    if granted.tightest() == member {
        assert_eq!(granted.remaining(), left);
    }
}
