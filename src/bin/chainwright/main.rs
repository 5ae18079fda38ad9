//! chainwright
fn main() {}
