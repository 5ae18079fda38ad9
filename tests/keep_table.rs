//! The example that keeps a table does so in the kernel, too.

mod common;
#[path = "../examples/keep_table.rs"]
mod keep_table;

#[test]
fn it_keeps_its_table_beside_a_rival() {
    drop(common::sandbox());
    keep_table::main().unwrap();
}
