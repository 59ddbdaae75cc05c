//! What a policy's file may say, and what is reported if it says something else.

mod golden;
