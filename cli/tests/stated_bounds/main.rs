//! The bounds that docs/ALGORITHMS.md derives are kept, and those that it calls tight are reached:
//! random requests aimed at the moments that matter, and every interval between grants looked at.
//!
//! | file | what |
//! |---|---|
//! | `promise` | the bounds as they are stated |
//! | `drive` | random requests, and their grants |
//! | `kept` | no interval holds more |
//! | `reached` | and some hold as much |

mod drive;
mod kept;
mod promise;
mod reached;
