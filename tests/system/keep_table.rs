//! Runs the example that keeps a table with the kernel, too.

#[path = "../../examples/keep_table.rs"]
mod example;

#[test]
fn it_keeps_its_table_beside_a_rival() {
    drop(crate::common::sandbox());
    example::main().unwrap();
}
