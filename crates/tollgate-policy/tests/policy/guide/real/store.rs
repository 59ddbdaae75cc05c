//! A store that can be switched off, as the page describes `redis`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tollgate::compose::Closed;
use tollgate::{AnyAlgorithm, FixedWindow, Keyed, ManualClock, Quota, TokenBucket};
use tollgate_policy::file::Fallback;
use tollgate_policy::{DynLimit, Hashed, KeyRef, LimitSpec, OwnLimit};

/// Whether the store does not answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Outage(Arc<Mutex<bool>>);

impl Outage {
    pub(super) fn begin(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn is_on(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Table = Keyed<AnyAlgorithm, ManualClock, Hashed>;

/// A limit of the store, and what decides in an outage.
#[derive(Debug)]
pub(super) struct Switched {
    store: Table,
    /// `None` denies.
    fallback: Option<Table>,
    outage: Outage,
}

impl Switched {
    pub(super) fn boxed(
        spec: &LimitSpec<'_, ManualClock>,
        outage: &Outage,
    ) -> Result<Box<dyn OwnLimit<ManualClock>>, String> {
        let table = |algorithm: AnyAlgorithm, keys: usize| {
            let table = Keyed::with_clock(algorithm, keys, spec.clock.clone());
            let table = table.map_err(|error| error.to_string())?;
            Ok::<_, String>(table.with_hasher(spec.hasher.clone()))
        };
        let whole: Quota = spec.limits[0].parse().map_err(|error| format!("{error}"))?;
        let rate = |quota| {
            TokenBucket::new(quota)
                .map(AnyAlgorithm::from)
                .map_err(|error| error.to_string())
        };
        let fallback = match spec.fallback {
            Fallback::Closed => None,
            Fallback::Open => return Err("the guide has no example of it".to_owned()),
            Fallback::OpenAtMost { at_most, .. } => {
                let quota = Quota::per(at_most.value, Duration::from_secs(86_400));
                let outage = FixedWindow::new(quota).map_err(|error| error.to_string())?;
                Some(table(outage.into(), spec.capacity)?)
            }
            Fallback::Local { processes, keys } => {
                let share = |n| n / processes.value;
                let quota = Quota::per(share(whole.permits()), whole.period());
                let quota = quota.burst(share(whole.burst_size()));
                Some(table(rate(quota)?, keys.value as usize)?)
            }
        };
        Ok(Box::new(Self {
            store: table(rate(whole)?, spec.capacity)?,
            fallback,
            outage: outage.clone(),
        }))
    }

    /// Returns the table that decides, if there is one.
    fn table(&self) -> Option<&Table> {
        match self.outage.is_on() {
            true => self.fallback.as_ref(),
            false => Some(&self.store),
        }
    }
}

impl OwnLimit<ManualClock> for Switched {
    fn with_key(
        &self,
        key: KeyRef<'_>,
        plan: usize,
        visit: &mut dyn FnMut(&DynLimit<'_, ManualClock>),
    ) {
        match self.table() {
            Some(table) => table.with_key(key, plan, visit),
            None => visit(&Closed),
        }
    }
}
