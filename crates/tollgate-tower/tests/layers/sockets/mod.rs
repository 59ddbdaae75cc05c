//! Limits over real sockets: HTTP/1.1 and HTTP/2, axum and tonic. The servers listen on a port of
//! the loopback that the system chooses, and the limiters' clocks stand still until a test moves
//! them, so all counts are exact.

mod addresses;
mod client;
mod echo;
mod grpc;
mod limits;
mod server;
mod slow;
mod streams;
