//! Decisions that ask stores elsewhere, after the limits of this process.

use std::mem;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::acquire::{acquire, acquire_all, refused};
use super::asks::Asks;
use super::decision::Decision;
use super::remotes::{RemoteMember, Remotes};
use super::state::State;
use crate::choose::Why;
use crate::facts::Facts;
use crate::limit::{PolicyClock, RuleLimit};
use crate::policy::Policy;

/// Decides about a request that has these facts, whose caller would wait this long. The facts are
/// read now, and all else happens when the future is polled.
pub(crate) fn decide_async<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    policy: R,
    sets: &[&dyn Facts],
    patience: Option<Duration>,
) -> impl Future<Output = Decision<R, C>> + use<R, C> {
    let mut asks = Asks::new(policy);
    asks.patience = patience;
    let why = asks.collect(sets);
    decide_collected(asks, why)
}

async fn decide_collected<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    mut asks: Asks<R, C>,
    why: Option<(Why, u32)>,
) -> Decision<R, C> {
    if let Some((why, set)) = why {
        return refused(asks.policy, why, set).into();
    }
    let members = asks.remote_members();
    if members.is_empty() {
        return acquire(asks).into();
    }
    let patience = asks.patience;
    let mut remotes = Remotes::new(members, asks.keys.clone(), asks.also_asked_by.clone());
    let mut state = acquire_all(asks);
    if !state.is_allowed() {
        return state.into();
    }
    let held = UndoOnDrop(&mut state);
    match remotes.take().await {
        true => mem::forget(held),
        false => {
            // First what needs no call, since the caller may drop the future from here on.
            drop(held);
            let ban = state
                .policy()
                .and_then(|policy| remotes.strike(policy, patience));
            // If the store does not answer, the permits stay taken there.
            let _ = remotes.undo().await;
            if let Some(long) = ban {
                remotes.ban_denied(long).await;
            }
        }
    }
    Decision {
        state,
        remotes: Some(Box::new(remotes)),
    }
}

impl<R: Deref<Target = Policy<C>>, C> Asks<R, C> {
    /// Takes those asks out of the collected ones that only a store elsewhere can answer.
    fn remote_members(&mut self) -> Vec<RemoteMember> {
        let asks = mem::take(&mut self.remote).into_iter();
        let members = asks.filter_map(|ask| match self.limit(&ask)? {
            RuleLimit::Remote(remote) => {
                let (limit, plan) = remote.of_key(ask.hash, ask.plan);
                Some(RemoteMember {
                    store: Arc::clone(&remote.store),
                    limit: Arc::clone(limit),
                    plan,
                    ask,
                    answer: None,
                    fallback: None,
                    is_remaining_known: true,
                })
            }
            _ => None,
        });
        members.collect()
    }
}

/// Gives the permits of this process back if it is dropped, for example with the future.
struct UndoOnDrop<'s, R: Deref<Target = Policy<C>>, C: PolicyClock>(&'s mut State<R, C>);

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Drop for UndoOnDrop<'_, R, C> {
    fn drop(&mut self) {
        self.0.undo();
    }
}
