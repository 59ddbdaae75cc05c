//! What a request asks of stores that decide asynchronously, and their answers.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tollgate::Denied;
use tollgate::outcome::{GrantInfo, Settled};

use super::asks::{AlsoAskedBy, Ask, others};
use crate::limit::{
    FallbackKind, KeyRef, RemoteAsk, RemoteError, RemoteGrants, RemoteLimit, RemoteStore,
};
use crate::rule::Bytes;

/// One limit of a store that a request asks.
pub(crate) struct RemoteMember {
    pub(crate) ask: Ask,
    pub(crate) store: Arc<dyn RemoteStore>,
    /// The rule's limit, or that of the key alone, and the position of the plan in it.
    pub(crate) limit: Arc<RemoteLimit>,
    pub(crate) plan: usize,
    /// `None` if it was not asked.
    pub(crate) answer: Option<Result<GrantInfo, Denied>>,
    /// What answered in the place of its store.
    pub(crate) fallback: Option<FallbackKind>,
    /// Whether the answer's remaining permits are those of the limit.
    pub(crate) is_remaining_known: bool,
}

impl RemoteMember {
    /// Returns the denial of a request that only looks, if the limit has no permit left. The wait
    /// is the time until the limit has all of them, which may be longer than until the next one.
    fn look(&self) -> Option<DeniedElsewhere> {
        let Some(Ok(info)) = self.answer else {
            return None;
        };
        let is_empty = self.ask.looks && !self.ask.trial && info.remaining() == 0;
        is_empty.then(|| DeniedElsewhere {
            ask: self.ask,
            denied: Denied::later(1, info.reset_after()),
            fallback: self.fallback,
        })
    }
}

/// A limit of a store that denies the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeniedElsewhere {
    pub(crate) ask: Ask,
    pub(crate) denied: Denied,
    pub(crate) fallback: Option<FallbackKind>,
}

impl DeniedElsewhere {
    /// Returns whether the denial says only that the store is not available.
    pub(crate) fn is_unavailable(&self) -> bool {
        let fallback = self.fallback;
        fallback.is_some_and(|fallback| fallback != FallbackKind::Local)
    }

    /// Returns how much the denial says about the request.
    fn says(&self) -> u8 {
        match self.fallback {
            None => 2,
            Some(_) => u8::from(!self.is_unavailable()),
        }
    }
}

/// The limits of stores that a request asks. The limits of one call lie side by side: first the
/// limits that can deny, by store, and then the limits on trial, by rule.
pub(crate) struct Remotes {
    pub(crate) members: Vec<RemoteMember>,
    keys: Bytes,
    also_asked_by: AlsoAskedBy,
    taken: Vec<(Range<usize>, Box<dyn RemoteGrants>)>,
    pub(crate) denied: Option<DeniedElsewhere>,
}

impl Remotes {
    pub(crate) fn new(asked: Vec<RemoteMember>, keys: Bytes, also_asked_by: AlsoAskedBy) -> Self {
        let mut members = Vec::<RemoteMember>::with_capacity(asked.len());
        for member in asked {
            let mut before = members.iter();
            let last = before.rposition(|other| is_one_call(other, &member));
            let can_deny = members.iter().filter(|other| !other.ask.trial).count();
            let place = match (last, member.ask.trial) {
                (Some(last), _) => last.saturating_add(1),
                (None, false) => can_deny,
                (None, true) => members.len(),
            };
            members.insert(place, member);
        }
        Self {
            members,
            keys,
            also_asked_by,
            taken: Vec::new(),
            denied: None,
        }
    }

    /// Asks the stores, one after the other, until a limit denies the request. If a fallback denies
    /// it, the other stores are asked all the same: their denial would say more. Limits on trial
    /// are asked last.
    ///
    /// Returns whether all grant it. If not, [`denied`](Self::denied) says which does not.
    pub(crate) async fn take(&mut self) -> bool {
        let mut start = 0;
        while let Some(first) = self.members.get(start) {
            if first.ask.trial && self.denied.is_some() {
                break;
            }
            let rest = self.members.iter().skip(start);
            let count = rest.skip(1).take_while(|it| is_one_call(first, it)).count();
            let call = start..start.saturating_add(count).saturating_add(1);
            let members = self.members.get(call.clone()).unwrap_or_default();
            let asked: Vec<_> = members.iter().map(|it| self.ask(it)).collect();
            let taken = first.store.take(&asked).await;
            let is_trial = first.ask.trial;
            start = call.end;
            match taken {
                Ok(grants) => {
                    let members = self.members.iter_mut().skip(call.start);
                    for (member, index) in members.take(call.len()).zip(0..) {
                        member.answer = grants.info(index).map(Ok);
                        member.fallback = grants.fallback(index);
                        member.is_remaining_known = grants.is_remaining_known(index);
                        if let (None, Some(denied)) = (self.denied, member.look()) {
                            self.denied = Some(denied);
                        }
                    }
                    self.taken.push((call, grants));
                    if self.denied.is_some_and(|denied| denied.fallback.is_none()) {
                        return false;
                    }
                }
                Err(refused) => {
                    let index = call.start.saturating_add(refused.index);
                    let index = if index < call.end { index } else { call.start };
                    if let Some(member) = self.members.get_mut(index) {
                        let (denied, fallback) = (refused.denied, refused.fallback);
                        (member.answer, member.fallback) = (Some(Err(denied)), fallback);
                        let denied = DeniedElsewhere {
                            ask: member.ask,
                            denied,
                            fallback,
                        };
                        let says_more = |before: DeniedElsewhere| denied.says() > before.says();
                        if !is_trial && self.denied.is_none_or(says_more) {
                            self.denied = Some(denied);
                        }
                    }
                    if self.denied.is_some_and(|denied| denied.fallback.is_none()) {
                        return false;
                    }
                }
            }
        }
        self.denied.is_none()
    }

    /// Returns the bytes of all keys.
    pub(crate) fn keys(&self) -> &[u8] {
        &self.keys
    }

    /// Returns the sets of facts that ask this limit after the first one.
    pub(crate) fn others(&self, ask: &Ask) -> &[u32] {
        others(&self.also_asked_by, ask)
    }

    pub(crate) fn ask<'a>(&'a self, member: &'a RemoteMember) -> RemoteAsk<'a> {
        let (start, end) = member.ask.key;
        RemoteAsk {
            limit: &*member.limit,
            key: KeyRef {
                bytes: self.keys.get(start..end).unwrap_or_default(),
                hash: member.ask.hash,
            },
            plan: member.plan,
            cost: member.ask.cost,
        }
    }

    /// Gives everything back, the last grants first.
    pub(crate) async fn undo(&mut self) -> Result<u64, RemoteError> {
        let mut back = 0_u64;
        let mut error = None;
        while let Some((_, grants)) = self.taken.pop() {
            match grants.undo().await {
                Ok(n) => back = back.saturating_add(n),
                Err(why) => error = error.or(Some(why)),
            }
        }
        error.map_or(Ok(back), Err)
    }

    /// Corrects all grants to their costs, which are in the order of the members.
    pub(crate) async fn settle(self, costs: Vec<u64>) -> Result<Settled, RemoteError> {
        let mut sum = Settled::default();
        let mut error = None;
        for (call, grants) in self.taken {
            let costs = costs.get(call).unwrap_or_default().to_vec();
            match grants.settle(costs).await {
                Ok(settled) => sum = sum.plus(settled),
                Err(why) => error = error.or(Some(why)),
            }
        }
        error.map_or(Ok(sum), Err)
    }
}

/// Returns whether two limits are asked in one call. Each rule on trial has a call of its own, so
/// that it takes all of its permits or none, whatever other rules decide.
fn is_one_call(one: &RemoteMember, other: &RemoteMember) -> bool {
    let decide_together = match (one.ask.trial, other.ask.trial) {
        (false, false) => true,
        (true, true) => one.ask.rule == other.ask.rule,
        _ => false,
    };
    decide_together && Arc::ptr_eq(&one.store, &other.store)
}

impl fmt::Debug for Remotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = self.members.iter().map(|it| (it.ask.rule, it.answer));
        f.debug_map().entries(answers).finish()
    }
}
