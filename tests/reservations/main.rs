//! Reservations: what is kept of them obeys the bound at the ticks at which it is due, whatever is cancelled in
//! whatever order, and every permit is accounted for.

mod every_order;
mod known_failures;
mod search;
mod steps;
