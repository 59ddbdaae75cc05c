//! A service, its client, and the page about it.

pub(crate) mod client;
pub(crate) mod messages;
pub(crate) mod page;
pub(crate) mod proxy;
pub(crate) mod service;

pub(crate) use client::{Client, descriptor, request};
pub(crate) use messages::{Code, RateLimitRequest, RateLimitResponse};
pub(crate) use service::Service;
