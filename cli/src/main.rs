//! The diffclf program.
#![allow(dead_code, reason = "the commands that use these parts come next")]

mod error;
mod files;
mod progress;
mod report;

fn main() {}
