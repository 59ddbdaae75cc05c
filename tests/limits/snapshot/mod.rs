//! A limiter that is saved and restored decides as one that never stopped. Bytes that no limiter
//! wrote are an error or a limiter that decides.

mod carried;
mod damage;
mod kept;
