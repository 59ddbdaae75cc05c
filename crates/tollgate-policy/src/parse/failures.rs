//! Reads the answers that are failures.

use super::table::Table;
use super::tree::{Tree, at};
use crate::file::{At, Failure};
use crate::problem::Problems;
use crate::rule::failure::GRPC;

/// Reads the answers that are failures.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems) -> Vec<At<Failure>> {
    let Some(field) = table.get("failures") else {
        return Vec::new();
    };
    let mut failures = Vec::new();
    for node in field.one_or_more(problems) {
        let failure = match &node.value {
            Tree::Integer(number) => u16::try_from(*number)
                .ok()
                .filter(|number| (100..=599).contains(number))
                .map(Failure::Status),
            Tree::Text(text) => named_failure(text),
            _ => None,
        };
        match failure {
            Some(failure) => failures.push(at(failure, node.position)),
            None => field.with(node).refuse(
                "must be a status from 100 to 599, a class of statuses such as \"5xx\", or a code \
                 of gRPC other than OK such as \"grpc:UNAUTHENTICATED\"",
                problems,
            ),
        }
    }
    failures
}

fn named_failure(text: &str) -> Option<Failure> {
    if let Some(name) = text.strip_prefix("grpc:") {
        let codes = GRPC.iter().zip(1..);
        let code = codes.into_iter().find(|(known, _)| **known == name);
        return code.map(|(_, code)| Failure::Grpc(code));
    }
    match text.as_bytes() {
        [digit @ b'1'..=b'5', b'x', b'x'] => Some(Failure::Class(digit & 0x0f)),
        _ => None,
    }
}
