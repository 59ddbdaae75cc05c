//! `tollgate check`, `tollgate explain` and `tollgate key`: policies before they ship, and what
//! they store.
//!
//! | file | what |
//! |---|---|
//! | `check` | all errors and warnings of a policy |
//! | `explain` | which rules apply to a request |
//! | `key` | what the keys of a rule are called on the server |
//! | `registered` | the names that a program registers |
//! | `request` | the request of `explain` |
//! | `source` | a policy's file |

pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod key;
mod registered;
mod request;
mod source;
