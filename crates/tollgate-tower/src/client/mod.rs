//! A client layer that paces requests by what servers say.
