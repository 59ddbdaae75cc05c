//! The status of a refusal.

use http::StatusCode;

use crate::Cause;

/// Returns the status for a cause, unless the answers or the refusal have another one.
pub(super) const fn of(cause: Cause) -> StatusCode {
    match cause {
        Cause::Limit | Cause::Banned | Cause::TooLarge => StatusCode::TOO_MANY_REQUESTS,
        Cause::Overload | Cause::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Cause::Listed | Cause::NoPlan => StatusCode::FORBIDDEN,
        Cause::MissingKey | Cause::Ambiguous => StatusCode::BAD_REQUEST,
        Cause::Misconfigured => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
