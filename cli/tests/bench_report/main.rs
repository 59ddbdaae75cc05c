//! `tollgate bench --report` writes a page that is well-formed, has every contestant and percentile in
//! its pictures and tables, says what it was measured on, needs nothing but itself, and can be read by
//! everybody. Nothing here looks at how fast anything is.

mod files;
mod page;
mod pictures;
mod readable;
mod tables;
