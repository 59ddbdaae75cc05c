//! A limiter of its own for each key, beside a table: what each of both says must be the same.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use tollgate::keyed::{Key, KeyAt};
use tollgate::{
    Adjustable, AdjustableAt, Charged, Debt, Denied, Forecast, Gauge, GiveBack, Granted, Keep,
    Level, ManualClock, NoClock, Quota, Requota, Settings, Tick,
};

/// What the algorithms of these tests can do.
pub(crate) trait Every:
    Requota + Settings + Clone + GiveBack + Debt + Forecast + Gauge + Debug
{
}
impl<A: Requota + Settings + Clone + GiveBack + Debt + Forecast + Gauge + Debug> Every for A {}

/// What is asked of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb {
    Acquire(u64),
    TakeUpTo(u64),
    Available,
    IsIdle,
    Level,
    TimeUntil(u64),
    Undo(Granted),
    Refund(u64),
    Charge(u64),
    Ban(Tick),
    Reset,
    Forget,
}

/// A grant, by all that it says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gave(pub(crate) Granted);

impl PartialEq for Gave {
    fn eq(&self, other: &Self) -> bool {
        let said = |Self(granted): &Self| {
            // Where nothing was granted it marks nothing.
            let mark = (granted.n() > 0).then_some(granted.mark());
            let counted = (granted.n(), granted.at(), mark);
            let left = (granted.remaining(), granted.reset_after());
            (counted, left, granted.due(), granted.delay())
        };
        said(self) == said(other)
    }
}

/// What is answered.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Outcome(Result<Gave, Denied>),
    Took(Gave),
    Number(u64),
    Back(u64),
    Charged(Charged),
    Level(Level),
    Wait(Option<Duration>),
    Yes(bool),
    Done,
}

impl Said {
    /// Whether something was taken, or came back.
    pub(crate) fn moved(&self) -> bool {
        match self {
            Self::Outcome(Ok(gave)) | Self::Took(gave) => gave.0.n() > 0,
            Self::Back(n) => *n > 0,
            Self::Charged(charged) => charged.n() > 0,
            _ => false,
        }
    }
}

/// The verbs that a table's key has at a tick, or by its clock, and that a limiter has, alike.
macro_rules! say {
    ($view:expr, $verb:expr) => {
        match $verb {
            Verb::Acquire(n) => Said::Outcome($view.try_acquire_n(n).map(Gave)),
            Verb::TakeUpTo(n) => Said::Took(Gave($view.take_up_to(n))),
            Verb::Available => Said::Number($view.available()),
            Verb::Level => Said::Level($view.level()),
            Verb::TimeUntil(n) => Said::Wait($view.time_until(n)),
            Verb::Undo(granted) => Said::Back($view.undo(granted)),
            Verb::Refund(n) => Said::Back($view.refund(n)),
            Verb::Charge(n) => Said::Charged($view.charge(n)),
            Verb::Reset => {
                $view.reset();
                Said::Done
            }
            other => unreachable!("{other:?}"),
        }
    };
}

/// Asks the table at this tick.
pub(crate) fn ask_at<A: Every, C>(view: &KeyAt<'_, A, C>, verb: Verb) -> Said {
    match verb {
        Verb::IsIdle => Said::Yes(view.is_idle()),
        Verb::Ban(until) => {
            view.ban(until).expect("there is room");
            Said::Done
        }
        verb => say!(view, verb),
    }
}

/// Asks the table at its clock's tick.
pub(crate) fn ask_now<A: Every>(key: &Key<'_, A, ManualClock>, verb: Verb) -> Said {
    match verb {
        Verb::Forget => Said::Yes(key.forget()),
        Verb::IsIdle | Verb::Ban(_) => ask_at(&key.at(key.now()), verb),
        verb => say!(key, verb),
    }
}

/// A key's own.
struct Own<A> {
    gate: Adjustable<A, NoClock>,
    is_banned: bool,
}

impl<A: Every> Own<A> {
    fn ask(&mut self, now: Tick, verb: Verb) -> Said {
        let view: AdjustableAt<'_, A, NoClock> = self.gate.at(now);
        let is_banned = self.is_banned && view.available() == 0;
        let said = match verb {
            Verb::IsIdle => Said::Yes(view.is_idle()),
            Verb::Ban(until) if until <= now => Said::Done,
            Verb::Ban(until) => {
                let _ = self.gate.at(until).take_up_to(u64::MAX);
                self.is_banned = true;
                Said::Done
            }
            Verb::Undo(_) | Verb::Refund(_) if is_banned => Said::Back(0),
            verb => say!(view, verb),
        };
        match verb {
            Verb::Ban(_) => {}
            Verb::Acquire(_) | Verb::TakeUpTo(_) if said.moved() => self.is_banned = false,
            _ if said.moved() => self.is_banned = is_banned,
            Verb::Reset => self.is_banned = false,
            _ => {}
        }
        said
    }
}

/// Those of all keys, of one algorithm.
pub(crate) struct Owns<A> {
    pub(crate) algorithm: A,
    version: u64,
    keys: HashMap<u64, Own<A>>,
}

impl<A: Every> Owns<A> {
    pub(crate) fn new(algorithm: A) -> Self {
        Self {
            algorithm,
            version: 0,
            keys: HashMap::new(),
        }
    }

    /// How many keys have one.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// A new one's versions are those of the others, so that a grant of one may be tried to be given back to
    /// another of the same key.
    fn fresh(&self, now: Tick) -> Own<A> {
        let gate = Adjustable::starting_at(self.algorithm.clone(), NoClock, now);
        for _ in 0..self.version {
            gate.at(now).set(self.algorithm.clone(), Keep::Fresh);
        }
        Own {
            gate,
            is_banned: false,
        }
    }

    /// Asks a key's own limiter. It is made by what changes it, or begins its time.
    pub(crate) fn ask(&mut self, key: u64, now: Tick, verb: Verb) -> Said {
        let own = self.keys.remove(&key);
        if let Verb::Forget = verb {
            return Said::Yes(own.is_some());
        }
        let was_there = own.is_some();
        let mut own = own.unwrap_or_else(|| self.fresh(now));
        let said = own.ask(now, verb);
        let starts = match verb {
            Verb::Ban(until) => until > now,
            Verb::Acquire(_) | Verb::TakeUpTo(_) => self.algorithm.initial_word(now) != 0,
            _ => false,
        };
        // To make a fresh one fresh is nothing.
        let is_nothing = matches!(verb, Verb::Reset) && !was_there;
        if !is_nothing && (was_there || starts || said.moved()) {
            self.keys.insert(key, own);
        }
        said
    }

    pub(crate) fn is_busy(&self, key: u64, now: Tick) -> bool {
        let own = self.keys.get(&key);
        own.is_some_and(|own| !own.gate.at(now).is_idle())
    }

    /// Those that can be told from fresh ones; the others are forgotten.
    pub(crate) fn busy(&mut self, now: Tick) -> Vec<u64> {
        self.keys.retain(|_, own| !own.gate.at(now).is_idle());
        self.keys.keys().copied().collect()
    }

    /// The first tick at which a busy key will be idle.
    pub(crate) fn idle_at(&self, key: u64, now: Tick) -> Tick {
        let gate = &self.keys[&key].gate;
        let (mut busy, mut idle) = (now.as_nanos(), u64::MAX);
        while idle - busy > 1 {
            let middle = busy + (idle - busy) / 2;
            match gate.at(Tick::from_nanos(middle)).is_idle() {
                true => idle = middle,
                false => busy = middle,
            }
        }
        Tick::from_nanos(idle)
    }

    pub(crate) fn forget(&mut self, key: u64) {
        self.keys.remove(&key);
    }

    /// Forgets who is banned. (How a ban goes on under another quota is no verb of a limiter.)
    pub(crate) fn forget_banned(&mut self) -> Vec<u64> {
        let banned = self.keys.iter().filter(|(_, own)| own.is_banned);
        let banned: Vec<u64> = banned.map(|(key, _)| *key).collect();
        self.keys.retain(|_, own| !own.is_banned);
        banned
    }

    /// Whether that is a quota for it, and then it is that of all.
    pub(crate) fn set_quota(&mut self, quota: Quota, keep: Keep, now: Tick) -> bool {
        let Ok(algorithm) = self.algorithm.with_quota(quota) else {
            return false;
        };
        if keep == Keep::Fresh || quota != self.algorithm.quota() {
            for own in self.keys.values() {
                let is_idle = own.gate.at(now).is_idle();
                own.gate.at(now).set_quota(quota, keep).expect("it is one");
                // As who is not in the table.
                if is_idle && keep == Keep::AsIs {
                    own.gate.reset();
                }
            }
            self.algorithm = algorithm;
            self.version += 1;
        }
        true
    }
}
