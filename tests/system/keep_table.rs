//! Runs the example that keeps a table with the kernel, too.

#[path = "../../examples/keep_table.rs"]
mod example;

#[test]
fn restores_its_table_after_changes_by_a_rival() {
    drop(crate::common::sandbox());
    example::main().unwrap();
}
