//! Waiting until a request may go.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tollgate::clock::Clock;
use tollgate::{Denied, Tick};

use super::line::{Enter, Guard, Stop};
use super::memory::GroupKey;
use super::quota::{OwnQuota, Permit};
use super::settings::Shared;

/// Why a request may not go.
#[derive(Debug)]
pub(super) enum NoTurn {
    /// The request would have to wait this long.
    WaitTooLong(Duration),
    /// The client's own quota denies it.
    Quota(Denied),
}

pin_project! {
    /// Waits until a request may go: for its turn in its group, for the pace of the group's limits,
    /// and for a permit of the client's own quota. A request that is dropped leaves the line and
    /// has taken nothing.
    pub(super) struct Turn {
        shared: Arc<Shared>,
        key: GroupKey,
        stage: Stage,
        // When it began to wait.
        began: Option<Tick>,
        // It waited for the pace of its group.
        waited: bool,
        // The tick at which the sleep ends.
        wakes: Tick,
        #[pin]
        sleep: Option<Sleep>,
    }
}

enum Stage {
    Begin,
    /// Waits for its turn in its group.
    Line(Enter),
    /// Is the first of its group.
    First(Guard, Option<Permit>),
    /// Is the first of its group, and waits for its turn to take a permit.
    QuotaLine(Guard, Enter),
}

impl Turn {
    pub(super) const fn new(shared: Arc<Shared>, key: GroupKey) -> Self {
        Self {
            shared,
            key,
            stage: Stage::Begin,
            began: None,
            waited: false,
            wakes: Tick::ZERO,
            sleep: None,
        }
    }

    /// Sleeps until this tick, or until the request has waited for as long as it may. If the tick
    /// is later than that, the request gives up at once.
    fn poll_until(
        self: Pin<&mut Self>,
        until: Option<Tick>,
        now: Tick,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), NoTurn>> {
        let mut this = self.project();
        let began = this.began.unwrap_or(now);
        let latest = began.saturating_add(this.shared.settings.max_wait);
        if now >= latest || until.is_some_and(|until| until > latest) {
            let wait = until.unwrap_or(now).max(now).saturating_since(began);
            return Poll::Ready(Err(NoTurn::WaitTooLong(wait)));
        }
        let wakes = until.unwrap_or(latest);
        if this.sleep.is_none() || *this.wakes != wakes {
            let wait = wakes.saturating_since(now);
            this.sleep.set(Some(tokio::time::sleep(wait)));
            *this.wakes = wakes;
        }
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(context));
        }
        this.sleep.set(None);
        Poll::Ready(Ok(()))
    }

    /// Stands in line in its group, or is the first at once.
    fn begin(shared: &Shared, key: GroupKey, now: Tick) -> Result<Stage, NoTurn> {
        let settings = &shared.settings;
        let turns = shared.memory.turns(key, now, settings.max_groups);
        if let Ok(guard) = turns.try_enter_owned(1) {
            return Ok(Stage::First(guard, None));
        }
        let least = settings
            .quota
            .as_ref()
            .map(|quota| quota.least_wait(turns.waiting().saturating_add(1)));
        match least {
            Some(wait) if wait > settings.max_wait => Err(NoTurn::WaitTooLong(wait)),
            _ => Ok(Stage::Line(turns.enter_owned(1))),
        }
    }
}

/// Takes a permit of the client's own quota, if this request is the first in its line.
fn take_permit(
    quota: &OwnQuota,
    permit: &mut Option<Permit>,
    began: Tick,
    now: Tick,
) -> Result<(), Stop> {
    if permit.is_none() {
        *permit = quota.try_enter();
    }
    let permit = permit.as_mut().ok_or(Stop::QuotaLine)?;
    quota.take(permit, began, now)
}

impl Future for Turn {
    type Output = Result<(), NoTurn>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let this = self.as_mut().project();
            let now = this.shared.settings.clock.now();
            let began = *this.began.get_or_insert(now);
            let shared = &**this.shared;
            let quota = shared.settings.quota.as_deref();
            let until = match std::mem::replace(this.stage, Stage::Begin) {
                Stage::Begin => {
                    *this.stage = Self::begin(shared, *this.key, now)?;
                    continue;
                }
                Stage::Line(mut enter) => match Pin::new(&mut enter).poll(context) {
                    Poll::Ready(entered) => {
                        *this.stage = Stage::First(entered.map_err(NoTurn::Quota)?, None);
                        continue;
                    }
                    Poll::Pending => {
                        *this.waited = true;
                        *this.stage = Stage::Line(enter);
                        None
                    }
                },
                Stage::QuotaLine(guard, mut enter) => match Pin::new(&mut enter).poll(context) {
                    Poll::Ready(entered) => {
                        let turn = entered.map_err(NoTurn::Quota)?;
                        *this.stage = Stage::First(guard, Some(Permit::new(turn)));
                        continue;
                    }
                    Poll::Pending => {
                        *this.stage = Stage::QuotaLine(guard, enter);
                        None
                    }
                },
                Stage::First(guard, mut permit) => {
                    let take = || {
                        quota.map_or(Ok(()), |quota| take_permit(quota, &mut permit, began, now))
                    };
                    let max_hold = shared.settings.max_hold;
                    let (key, waited, waker) = (*this.key, *this.waited, context.waker());
                    let memory = &shared.memory;
                    let departed = memory.depart(key, now, waited, max_hold, waker, take);
                    match (departed, quota) {
                        (Ok(()), _) => return Poll::Ready(Ok(())),
                        (Err(Stop::Pace(until)), _) => {
                            // Others may take permits meanwhile.
                            *this.stage = Stage::First(guard, None);
                            *this.waited = true;
                            Some(until)
                        }
                        (Err(Stop::Answer(until)), _) => {
                            *this.stage = Stage::First(guard, None);
                            *this.waited = true;
                            // The answer may come long before.
                            let latest = began.saturating_add(shared.settings.max_wait);
                            (until < latest).then_some(until)
                        }
                        (Err(Stop::Permit(until)), _) => {
                            *this.stage = Stage::First(guard, permit);
                            *this.waited = false;
                            Some(until)
                        }
                        (Err(Stop::QuotaLine), Some(quota)) => {
                            *this.stage = Stage::QuotaLine(guard, quota.enter());
                            *this.waited = false;
                            continue;
                        }
                        (Err(Stop::QuotaLine), None) => continue,
                        (Err(Stop::Denied(denied)), _) => {
                            return Poll::Ready(Err(NoTurn::Quota(denied)));
                        }
                    }
                }
            };
            ready!(self.as_mut().poll_until(until, now, context))?;
        }
    }
}
