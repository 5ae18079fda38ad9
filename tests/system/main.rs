//! Namespaces, threads, kernels and processes: what the tables depend on.

#[path = "../common/mod.rs"]
mod common;
mod conntrack;
mod keep_table;
mod kernels;
mod kill;
mod measure;
mod netns;
mod threads;
