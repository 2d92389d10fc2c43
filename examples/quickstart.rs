//! Placeholder of the first commit.
fn main() {}
