//! The keyed table. Each key has its limit as if by a limiter of its own, whatever other keys and
//! threads do, and whether or not it is in the table. Only the policy allows more, and that is
//! counted.

mod bad_input;
mod bans;
mod changes;
mod churn;
mod exact;
mod flood;
mod interrupted;
mod keys;
mod known_failures;
mod late;
mod order_of_leaving;
mod overrides;
mod reservations;
mod single_grant_floods;
mod snapshot;
mod spent_keys_stay;
mod table;
mod threads;
mod zipf;
