//! The diffclf program.
fn main() {}
