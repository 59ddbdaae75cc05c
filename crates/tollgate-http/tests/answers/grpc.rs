//! Answers of gRPC, read by tonic.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::Quota;
use tollgate_http::{Answers, Cause, Fields, Refusal};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::states::denied;

fn status(refusal: &Refusal<'_>) -> Status {
    let answer = Answers::new().refuse_grpc(refusal);
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/grpc");
    assert!(answer.body().is_empty());
    Status::from_header_map(answer.headers()).expect("it has a status")
}

#[test]
fn each_cause_has_its_code() {
    for (cause, code) in [
        (Cause::Limit, Code::ResourceExhausted),
        (Cause::Overload, Code::ResourceExhausted),
        (Cause::Banned, Code::ResourceExhausted),
        (Cause::TooLarge, Code::ResourceExhausted),
        (Cause::Listed, Code::PermissionDenied),
        (Cause::NoPlan, Code::PermissionDenied),
        (Cause::MissingKey, Code::InvalidArgument),
        (Cause::Ambiguous, Code::InvalidArgument),
        (Cause::Unavailable, Code::Unavailable),
        (Cause::Misconfigured, Code::Internal),
    ] {
        let status = status(&Refusal::new(cause));
        assert_eq!(status.code(), code);
        assert!(!status.message().is_empty());
        assert!(status.get_details_retry_info().is_none());
    }
}

#[test]
fn the_details_have_the_same_code_and_message() {
    let refusal = Refusal::new(Cause::Limit).retry_after(Duration::from_millis(1500));
    let status = status(&refusal);
    assert_eq!(status.message(), "too many requests: retry in 2 s");
    let details = tonic_types::pb::Status::decode_from(status.details());
    assert_eq!(
        (details.code, details.message.as_str()),
        (8, status.message())
    );
    assert_eq!(details.details.len(), 1);
}

/// Reads google.rpc.Status.
trait DecodeFrom {
    fn decode_from(bytes: &[u8]) -> Self;
}

impl DecodeFrom for tonic_types::pb::Status {
    fn decode_from(bytes: &[u8]) -> Self {
        prost::Message::decode(bytes).expect("a status")
    }
}

#[test]
fn fields_and_retry_after_are_those_of_other_answers() {
    let limits = [denied(
        "a",
        Quota::per_minute(6),
        0,
        Duration::from_secs(10),
    )];
    let refusal = Refusal::new(Cause::Limit);
    let refusal = refusal.retry_after(Duration::from_secs(10)).limits(&limits);
    let answer = Answers::new().fields(Fields::LIST).refuse_grpc(&refusal);
    assert_eq!(answer.headers()["retry-after"], "10");
    assert_eq!(answer.headers()["ratelimit"], "\"a\";r=0;t=10");
}

proptest! {
    #[test]
    fn the_delay_is_exact(seconds in 0_u64..315_576_000_000, nanos in 0_u32..1_000_000_000) {
        let wait = Duration::new(seconds, nanos);
        let status = status(&Refusal::new(Cause::Limit).retry_after(wait));
        let info = status.get_details_retry_info().expect("a delay");
        prop_assert_eq!(info.retry_delay, Some(wait));
    }
}

#[test]
fn the_longest_delay_is_that_of_protocol_buffers() {
    let status = status(&Refusal::new(Cause::Limit).retry_after(Duration::MAX));
    let info = status.get_details_retry_info().expect("a delay");
    assert_eq!(info.retry_delay, Some(Duration::from_secs(315_576_000_000)));
}
