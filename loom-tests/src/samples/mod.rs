//! The crate's own algorithms as subjects, with small quotas.

pub mod windows;

use std::time::Duration;

use tollgate::algorithm::{Debt, Forecast, Gauge, GiveBack};
use tollgate::{Gcra, Quota, TokenBucket};
use tollgate_audit::Bounded;

use crate::subject::Subject;
use crate::words::MakeWord;

/// A token bucket with one permit every 2 ns and a burst of 2.
pub fn bucket(make_word: MakeWord) -> Subject<TokenBucket> {
    let quota = Quota::per(1, Duration::from_nanos(2)).burst(2);
    all_verbs(TokenBucket::new(quota).expect("a quota"), make_word)
}

/// The same token bucket, starting empty.
pub fn empty_bucket(make_word: MakeWord) -> Subject<TokenBucket> {
    let quota = Quota::per(1, Duration::from_nanos(2)).burst(2).initial(0);
    all_verbs(TokenBucket::new(quota).expect("a quota"), make_word)
}

/// A token bucket whose arithmetic rounds: 17 permits every 10 ns and a burst of 3.
pub fn rounding_bucket(make_word: MakeWord) -> Subject<TokenBucket> {
    let quota = Quota::per(17, Duration::from_nanos(10)).burst(3);
    all_verbs(TokenBucket::new(quota).expect("a quota"), make_word).rounding()
}

/// GCRA with an interval of 2 ns and a tolerance of 3 ns, which is not a multiple of it.
pub fn spaced(make_word: MakeWord) -> Subject<Gcra> {
    let (interval, tolerance) = (Duration::from_nanos(2), Duration::from_nanos(3));
    let gcra = Gcra::from_interval(interval, tolerance).expect("an interval");
    all_verbs(gcra, make_word)
}

/// Makes a subject with all verbs and the algorithm's own bound.
fn all_verbs<A>(algorithm: A, make_word: MakeWord) -> Subject<A>
where
    A: Bounded + Debt + Forecast + Gauge + GiveBack + Copy + Send + Sync + 'static,
{
    Subject::new(move || algorithm)
        .with_give_back()
        .with_debt()
        .with_forecast()
        .with_gauge()
        .promising(algorithm.bound())
        .on(make_word)
}
