//! ShenYu's concurrent limit on redis, a set of ids: a [`Concurrency`], with a guard for each id.
//!
//! `count` is the size of the set including this id, or without it after a refusal. `zcard_after`
//! is the size of the set at the end. Time plays no part.

use std::collections::BTreeMap;

use tollgate::concurrency::ConcurrencyGuard;
use tollgate_replay::prelude::*;

use super::Begun;
use super::classes::TAKES_NONE;

pub(super) fn begin(header: &Header) -> Begun {
    let limiter = Concurrency::new(header.config.u64("capacity")?)
        .map_err(|error| Malformed(format!("can't be built: {error}")))?;
    Ok(Box::new(Ids {
        limiter: Arc::new(limiter),
        inside: BTreeMap::new(),
        again: None,
    }))
}

struct Ids {
    limiter: Arc<Concurrency>,
    inside: BTreeMap<String, ConcurrencyGuard<Arc<Concurrency>>>,
    /// The first guard of an id that came again.
    again: Option<ConcurrencyGuard<Arc<Concurrency>>>,
}

impl Ids {
    fn acquire(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let entered = self.limiter.try_enter_owned(1);
        let ok = entered.is_ok();
        let count = self.limiter.inside();
        if let Ok(guard) = entered {
            let id = op.args.text("id")?.to_owned();
            self.again = self.inside.insert(id, guard);
        }
        Ok(Comparison::decision(op.result.flag("ok")?, ok)
            .and("count", op.result.u64("count")?, count)
            .and("zcard_after", op.result.u64("zcard_after")?, count))
    }

    fn release(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let guard = self.inside.remove(op.args.text("id")?);
        let removed = u64::from(guard.is_some());
        drop(guard);
        let after = op.result.u64("zcard_after")?;
        Ok(Comparison::without_decision()
            .and("removed", op.result.u64("removed")?, removed)
            .and("zcard_after", after, self.limiter.inside()))
    }
}

impl Replay for Ids {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        op.args.text("id")?;
        match op.name.as_str() {
            "acquire" => self.acquire(op),
            "release" => self.release(op),
            _ => Err(op.unknown()),
        }
    }

    fn class(&self, _: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let (theirs, ours) = comparison.numbers("zcard_after")?;
        let is_it = self.again.is_some()
            && field == "zcard_after"
            && comparison.agrees_on("ok")
            && comparison.agrees_on("count")
            && theirs + 1 == ours;
        is_it.then_some(&TAKES_NONE)
    }

    fn take_over(&mut self, _: &Op) -> Result<bool, Malformed> {
        Ok(self.again.take().is_some())
    }
}
