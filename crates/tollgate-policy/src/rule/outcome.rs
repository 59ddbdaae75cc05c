//! How requests end.

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The request succeeded. Rules that count failures give its permits back.
    Success,
    /// The request failed because of what the client did, such as a wrong password. Rules that
    /// count successes give its permits back.
    Failure,
    /// The request neither succeeded nor failed, for example because of an error of the service.
    /// Rules that count failures or successes give its permits back.
    Neither,
    /// The client went away before the answer, so the outcome is not known. Rules that count
    /// failures keep its permits; otherwise a client could send requests without end. But it does
    /// not count towards a ban. Rules that count successes give its permits back.
    Unanswered,
}

impl Outcome {
    /// Returns the outcome of an HTTP response with this status: 401, 403 and 422 are failures,
    /// statuses below 400 successes, and all others neither. So errors of the service and missing
    /// pages count for no client.
    ///
    /// ```
    /// use tollgate_policy::Outcome;
    ///
    /// let outcomes = [204, 401, 404, 500].map(Outcome::of_status);
    /// let [right, wrong, absent, broken] = outcomes;
    /// assert_eq!((right, wrong), (Outcome::Success, Outcome::Failure));
    /// assert_eq!((absent, broken), (Outcome::Neither, Outcome::Neither));
    /// ```
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            401 | 403 | 422 => Self::Failure,
            ..=399 => Self::Success,
            _ => Self::Neither,
        }
    }
}
