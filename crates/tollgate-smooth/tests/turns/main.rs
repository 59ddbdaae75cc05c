//! The smooth limiters give the turns of their definitions for any requests, and threads that take
//! turns together are never early together.

mod asked_again;
mod bad_input;
mod exact;
mod examples;
mod known_failures;
mod support;
mod threads;
mod timers;
mod warming;
