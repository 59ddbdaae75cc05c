//! What the server layer does with requests, in process and on a manual clock.

mod basics;
mod failures;
mod misuse;
mod support;
