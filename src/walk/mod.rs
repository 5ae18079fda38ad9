//! Where packets go: through the rulesets of both backends.

pub mod graph;
