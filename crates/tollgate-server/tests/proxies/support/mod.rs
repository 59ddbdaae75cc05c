//! A program behind a proxy that asks a service, and clients.

mod app;
pub(crate) mod checks;
pub(crate) mod guide;
mod process;
mod raw;
mod service;
mod site;

pub(crate) use app::App;
pub(crate) use process::Process;
pub(crate) use raw::{Reply, exchange};
pub(crate) use service::Service;
pub(crate) use site::{Kind, Site};
