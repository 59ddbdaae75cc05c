//! A layer for HTTP clients: it paces requests by what servers say.

mod blind;
mod budget;
mod copy;
mod error;
mod future;
mod group;
mod layer;
mod memory;
mod message;
mod pace;
mod quota;
mod retry;
mod service;
mod settings;
mod turn;

pub use budget::RetryBudget;
pub use copy::{CloneRequest, CopyRequest, NeverCopy};
pub use error::ClientError;
pub use future::ClientFuture;
pub use layer::ClientLimitLayer;
pub use message::{ClientRequest, ClientResponse, RequestHead};
pub use pace::Pace;
pub use service::ClientLimit;
