//! A limiter, or a key of a table, that is saved and restored decides as one that never stopped.
//! Bytes that no limiter wrote are an error or a limiter that decides.

mod carried;
mod damage;
mod kept;

use tollgate::Keyed;

use crate::support::*;

/// What is saved and restored.
enum One {
    Limiter(Limiter<AnyAlgorithm, NoClock>),
    Key(Box<Keyed<AnyAlgorithm, NoClock>>),
}

/// Does this with the view of [`One`] at this tick.
macro_rules! on {
    ($one:expr, $now:expr, |$view:ident| $act:expr) => {
        match $one {
            One::Limiter(limiter) => {
                let $view = limiter.at($now);
                $act
            }
            One::Key(table) => {
                let $view = table.key("key").at($now);
                $act
            }
        }
    };
}
use on;

impl One {
    fn limiter(algorithm: AnyAlgorithm) -> Self {
        Self::Limiter(Limiter::unstarted(algorithm, NoClock))
    }

    fn key(algorithm: AnyAlgorithm) -> Self {
        let table = Keyed::with_clock(algorithm, 1, NoClock);
        Self::Key(Box::new(table.expect("a table")))
    }

    /// Returns functions that make each kind. A key that leaves its table when it is idle starts
    /// with its initial permits, so it may not have fewer than its burst.
    fn kinds(algorithm: &AnyAlgorithm) -> impl Iterator<Item = fn(AnyAlgorithm) -> Self> + use<> {
        let all: [fn(AnyAlgorithm) -> Self; 2] = [Self::limiter, Self::key];
        let starts_full = !algorithm.to_string().contains("initial");
        all.into_iter().take(1 + usize::from(starts_full))
    }

    fn saved(&self, now: Tick) -> Vec<u8> {
        match self {
            Self::Limiter(limiter) => limiter.at(now).snapshot().into(),
            Self::Key(table) => {
                let mut bytes = Vec::new();
                let written = table.snapshot_at(&mut bytes, now);
                assert!(written.expect("there is memory") <= 1);
                bytes
            }
        }
    }

    #[track_caller]
    fn restore(&mut self, now: Tick, mut bytes: &[u8], elapsed: Duration) {
        match self {
            Self::Limiter(limiter) => {
                let restored = limiter.at(now).restore_after(bytes, elapsed);
                restored.expect("whole");
            }
            Self::Key(table) => {
                let restored = table.restore_at(&mut bytes, now, elapsed);
                assert_eq!(restored.expect("whole").no_room, 0);
            }
        }
    }
}
