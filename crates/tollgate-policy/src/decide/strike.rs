//! Denials that count towards a ban, and what a key is answered that they ban.

use std::ops::Deref;
use std::time::Duration;

use tollgate::{Denied, Tick};

use super::asks::{Ask, Asks};
use super::remotes::{DeniedElsewhere, Remotes};
use super::state::State;
use crate::limit::PolicyClock;
use crate::policy::Policy;
use crate::rule::CompiledRule;

/// Returns whether a caller with this patience waits for the end of a denial, which then does not
/// count.
fn waits(patience: Option<Duration>, denied: &Denied) -> bool {
    match denied {
        Denied::Later { retry_after, .. } => patience.is_some_and(|it| *retry_after <= it),
        _ => false,
    }
}

/// Returns whether a denial counts towards a ban.
const fn counts(denied: Denied) -> bool {
    matches!(
        denied,
        Denied::Later { .. } | Denied::Never { .. } | Denied::Busy { .. }
    )
}

/// Returns the denial of a key that is banned for this long, if the ban is the longer wait.
fn banned(denied: &Denied, long: Duration) -> Option<Denied> {
    let is_longer = denied.retry_after().is_some_and(|wait| wait < long);
    is_longer.then(|| Denied::banned(denied.requested(), Some(long)))
}

impl<C: PolicyClock> Policy<C> {
    /// Returns the rule of a limit, if its denials count towards a ban.
    fn that_bans(&self, ask: &Ask) -> Option<&CompiledRule<C>> {
        let rule = self.rules.get(ask.rule)?;
        (rule.bans_denials() && !ask.trial).then_some(rule)
    }
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Asks<R, C> {
    /// Counts a denial by this process, and returns what becomes of the request.
    pub(super) fn denied(self, member: usize, denied: Denied, now: Tick) -> State<R, C> {
        let ban = match waits(self.patience, &denied) {
            true => None,
            false => self.longest_ban(now),
        };
        match ban.and_then(|(member, long)| Some((member, banned(&denied, long)?))) {
            Some(banned) => State::Asked(self, Err(banned)),
            None => State::Asked(self, Err((member, denied))),
        }
    }

    /// Counts a denial for each rule that denies the request. Returns the longest ban, and a limit
    /// of its rule.
    fn longest_ban(&self, now: Tick) -> Option<(usize, Duration)> {
        let asks = self.list.iter().enumerate();
        let bans = asks.filter_map(|(index, ask)| Some((index, ask, self.policy.that_bans(ask)?)));
        let denying = bans.filter(|(index, ..)| self.look(*index, now).is_some_and(counts));
        let mut last = None;
        // Once for each key, however many limits of the rule deny.
        let struck = denying.filter(|(_, ask, _)| {
            let key = Some((ask.rule, ask.hash));
            std::mem::replace(&mut last, key) != key
        });
        let bans = struck.filter_map(|(index, ask, rule)| Some((index, rule.strike(ask.hash)?)));
        // If several are equally long, the first.
        bans.reduce(|longest, other| match longest.1 < other.1 {
            true => other,
            false => longest,
        })
    }
}

impl Remotes {
    /// Counts the denial by a store. Returns for how long the key is banned, if it is.
    pub(super) fn strike<C: PolicyClock>(
        &self,
        policy: &Policy<C>,
        patience: Option<Duration>,
    ) -> Option<Duration> {
        let by = self.denied.filter(|by| by.fallback.is_none())?;
        let is_strike = counts(by.denied) && !waits(patience, &by.denied);
        let rule = policy.that_bans(&by.ask).filter(|_| is_strike)?;
        rule.strike(by.ask.hash)
    }

    /// Bans the key that a store denied there too, and puts the ban in place of the denial.
    pub(super) async fn ban_denied(&mut self, long: Duration) {
        let Some(by) = self.denied else {
            return;
        };
        let told = self.ban(|ask| ask.is_same(&by.ask), long).await;
        let told = told.map(|wait| Denied::banned(by.denied.requested(), Some(wait)));
        // A store that does not say the wait may not have banned the key, but this process has.
        if let Some(denied) = told.or_else(|| banned(&by.denied, long)) {
            self.denied = Some(DeniedElsewhere { denied, ..by });
        }
    }

    /// Bans a key at the store of the first limit that is wanted. Returns how long a request must
    /// wait then, if the store says it.
    pub(super) async fn ban(
        &self,
        is_wanted: impl Fn(&Ask) -> bool,
        long: Duration,
    ) -> Option<Duration> {
        let mut members = self.members.iter();
        let member = members.find(|member| is_wanted(&member.ask))?;
        member.store.ban_for(self.ask(member), long).await
    }
}
