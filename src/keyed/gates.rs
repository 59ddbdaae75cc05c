//! A key of a table is a limiter as any other.

use core::time::Duration;

use super::Key;
use crate::algorithm::Algorithm;
use crate::algorithm::Debt;
use crate::algorithm::GiveBack;
use crate::algorithm::Reserve;
use crate::clock::{Clock, Sleeps, Tick};
use crate::gate::{DebtGate, Gate, GiveBackGate, ReserveGate, gate_of_views};
use crate::outcome::{Charged, Denied, Granted};
use crate::wait::{Reservation, waits};

gate_of_views!(Key<'_, A, C>);
waits!([Reserve] [] copied Key<'_, A, C>);
