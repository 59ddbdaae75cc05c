//! What went wrong in other limiters and middleware, and does not here. Each test names the
//! project.

mod limits;
mod middleware;
mod page;
mod waits;
