//! Shared code of the programs that capture what versions of iptables write and read.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};

use chainwright::nft::{Connection, Scope, Table, Transaction};

/// The built-in chains of all tables.
pub(crate) const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/// Deletes all tables, and waits until their content is freed.
pub(crate) fn clear() -> Result<(), Box<dyn Error>> {
    let mut nft = Connection::open()?;
    let mut transaction = Transaction::new();
    let mut some = false;
    let mut tables = nft.tables(Scope::all())?;
    while let Some(table) = tables.try_next()? {
        transaction.delete(&Table::new(table.family(), table.name()))?;
        some = true;
    }
    drop(tables);
    if some {
        nft.commit(&transaction)?;
    }
    Ok(())
}

/// Runs a command in this thread's network namespace.
pub(crate) fn run(command: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut words = command.split(' ').chain(arguments.iter().copied());
    let mut child = Command::new(words.next().unwrap_or_default())
        .args(words)
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // The input is short, and nothing is printed before it is read.
    if let Some(mut stdin) = child.stdin.take() {
        let written = stdin.write_all(input.as_bytes());
        if !written
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
        {
            written?;
        }
    }
    child.wait_with_output()
}
