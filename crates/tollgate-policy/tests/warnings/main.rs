//! What a policy is warned of.

mod never_denies;
mod rules;
