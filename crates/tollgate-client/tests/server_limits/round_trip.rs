//! What [`Answers`] write, a client reads.

use std::time::Duration;

use http::HeaderMap;
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{Denied, Quota};
use tollgate_client::{ServerLimit, ServerLimits};
use tollgate_http::{Answers, Cause, Fields, LimitState, Refusal, Unit};

use crate::now;
use crate::states::grant;

/// A limit with its name, burst, time for a permit, permits left, reset and key.
type Said = (String, u64, Option<u64>, u64, u64, Option<Vec<u8>>, bool);

fn said() -> impl Strategy<Value = Said> {
    (
        "[a-c \"\\\\]{0,3}",
        1..1000_u64,
        proptest::option::of(1..5000_u64),
        0..1000_u64,
        0..100_000_u64,
        proptest::option::of(vec(any::<u8>(), 0..5)),
        any::<bool>(),
    )
}

fn state<'s>((name, burst, millis, left, reset, key, denies): &'s Said) -> LimitState<'s> {
    let reset = Duration::from_millis(*reset);
    let state = match millis {
        Some(millis) => {
            let quota = Quota::per(1, Duration::from_millis(*millis)).burst(*burst);
            let state = LimitState::of_rate(name, quota).unit(Unit::ContentBytes);
            if *denies {
                state.denied(&Denied::later(1, reset), *left)
            } else {
                state.granted(grant(1, *left, reset))
            }
        }
        None => LimitState::of_concurrency(name, *burst).untouched(1, *left),
    };
    match key {
        Some(key) => state.partition(key),
        None => state,
    }
}

fn seconds(time: Duration) -> Duration {
    Duration::from_secs(tollgate::outcome::ceil_secs(time))
}

/// What a client must read of a limit, if the fields have no names.
fn expected(state: &LimitState<'_>) -> ServerLimit {
    let mut limit = ServerLimit::default();
    limit.quota = Some(state.quota());
    limit.remaining = Some(state.remaining());
    limit.reset = state.reset().map(seconds);
    limit
}

fn read_back(fields: Fields, limits: &[LimitState<'_>]) -> ServerLimits {
    let mut headers = HeaderMap::new();
    let answers = Answers::new().fields(fields);
    answers.write_at(limits.iter().copied(), now(), &mut headers);
    ServerLimits::read(&headers, now())
}

proptest! {
    #[test]
    fn lists_are_read_back(said in vec(said(), 1..5)) {
        let limits: Vec<_> = said.iter().map(state).collect();
        let read = read_back(Fields::LIST, &limits);
        prop_assert_eq!(read.limits.len(), limits.len());
        for (read, limit) in read.limits.iter().zip(&limits) {
            let mut expected = expected(limit);
            prop_assert!(read.name.starts_with(limit.name()));
            expected.name = read.name.clone();
            expected.window = limit.window().map(seconds);
            expected.unit = match limit.counts() {
                Unit::ContentBytes => tollgate_client::Unit::ContentBytes,
                Unit::ConcurrentRequests => tollgate_client::Unit::ConcurrentRequests,
                _ => tollgate_client::Unit::Requests,
            };
            expected.partition = limit.partition_key().map(<[u8]>::to_vec);
            prop_assert_eq!(read, &expected);
        }
    }

    #[test]
    fn a_single_limit_is_read_back_in_each_generation(said in said()) {
        let limit = state(&said);
        for fields in [Fields::DICTIONARY, Fields::TRIPLE] {
            let mut expected = expected(&limit);
            expected.window = limit.window().map(seconds);
            prop_assert_eq!(read_back(fields, &[limit]).limits, [expected]);
        }
        for fields in [Fields::X_SECONDS, Fields::X_EPOCH] {
            prop_assert_eq!(read_back(fields, &[limit]).limits, [expected(&limit)]);
        }
        let spring = read_back(Fields::SPRING, &[limit]);
        let read = &spring.limits[0];
        prop_assert_eq!((read.quota, read.remaining), (Some(limit.quota()), Some(limit.remaining())));
    }

    #[test]
    fn generations_together_say_one_limit(said in said()) {
        let limit = state(&said);
        let together = Fields::LIST | Fields::TRIPLE | Fields::X_SECONDS;
        prop_assert_eq!(read_back(together, &[limit]), read_back(Fields::LIST, &[limit]));
        let both = Fields::DICTIONARY | Fields::TRIPLE;
        prop_assert_eq!(read_back(both, &[limit]), read_back(Fields::TRIPLE, &[limit]));
    }

    #[test]
    fn retry_after_is_read_back(millis in 0..86_400_000_u64) {
        let wait = Duration::from_millis(millis);
        let refusal = Refusal::new(Cause::Limit).retry_after(wait);
        let answer = Answers::new().refuse(&refusal);
        let read = ServerLimits::read(answer.headers(), now());
        let expected = seconds(wait).max(Duration::from_secs(1));
        prop_assert_eq!(read.retry_after, Some(expected));
    }
}
