//! The PROXY protocol, version 2.
