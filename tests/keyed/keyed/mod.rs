//! The keyed table: each key is held to its limit as by a limiter of its own, whatever other keys
//! and threads do, and whether it is in the table or has left it; what is allowed besides is caused
//! by the policy alone, and counted.

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
mod snapshot;
mod spent_keys_stay;
mod table;
mod threads;
mod zipf;
