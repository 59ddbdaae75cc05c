//! Envoy's rate limit service: by calls of gRPC, and with Envoy itself.

mod calls;
mod decisions;
mod examples;
mod hits;
mod own_limits;
mod proxy;
mod support;
mod waiting;
