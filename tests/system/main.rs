//! Namespaces, threads, kernels and processes: what lies below and beside the tables.

#[path = "../common/mod.rs"]
mod common;
mod conntrack;
mod keep_table;
mod kernels;
mod kill;
mod measure;
mod netns;
mod threads;
