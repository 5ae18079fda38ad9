//! `chainwright confirm` and `chainwright get pending`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use serde::Serialize;

use super::keeper::KeeperRequest;
use super::record::{Files, Record, State, directory};
use crate::output::{Error, Exit, Output, Printable, note};

/// Keep the change that waits for a confirmation
///
/// Confirms the change that a verb with --confirm made in this network namespace. The exit code is 1 if none waits, or
/// if it has been undone already.
#[derive(clap::Args)]
pub(crate) struct ConfirmArgs {}

/// Show the change that waits for a confirmation
///
/// Shows the change that a verb with --confirm made in this network namespace: the command, its user and process, when
/// it was made, when it will be undone, and the changed tables. If none waits, the exit code is 1, and it shows how the
/// last one ended. The exit code is 2 if that one could not be undone.
#[derive(clap::Args)]
pub(crate) struct PendingArgs {}

/// The JSON document of both verbs.
#[derive(Serialize)]
struct Document<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<&'r Record>,
}

/// Returns the keeper's answer, or the last record; and whether there is a keeper.
fn answer(files: &Files, request: KeeperRequest) -> Result<(Option<Record>, bool), Error> {
    let stream = files.connect()?;
    let is_kept = stream.is_some();
    // A keeper that has just ended has written the outcome.
    match stream.and_then(|stream| send(stream, request)) {
        Some(record) => Ok((Some(record), is_kept)),
        None => Ok((files.read()?, false)),
    }
}

/// Sends a request to the keeper; returns `None` if it ends.
fn send(mut stream: UnixStream, request: KeeperRequest) -> Option<Record> {
    let mut request = serde_json::to_vec(&request).ok()?;
    request.push(b'\n');
    stream.write_all(&request).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

pub(crate) fn confirm(_: &ConfirmArgs, json: bool) -> Result<Exit, Error> {
    let files = Files::here(directory())?;
    let (record, is_kept) = answer(&files, KeeperRequest::Confirm)?;
    let mut out = Output::new();
    if json {
        let change = record.as_ref();
        out.json("confirm", &Document { change })?;
    }
    let exit = match &record {
        Some(record) if is_kept && record.state == State::Kept => {
            if !json {
                writeln!(out, "kept     {}", Printable(&record.what))?;
            }
            Exit::Done
        }
        Some(record) if is_kept && record.state == State::Applying => {
            note("the change is not complete yet: repeat this when it is");
            Exit::Failed
        }
        record => none_waits(record.as_ref()),
    };
    out.flush()?;
    Ok(exit)
}

pub(crate) fn pending(_: &PendingArgs, json: bool) -> Result<Exit, Error> {
    let files = Files::here(directory())?;
    let (record, is_kept) = answer(&files, KeeperRequest::Status)?;
    let mut out = Output::new();
    if json {
        let change = record.as_ref();
        out.json("pending", &Document { change })?;
    } else if let Some(record) = record.as_ref().filter(|_| is_kept) {
        let until = match &record.until {
            Some(until) => format!(
                "until    {until}; then it is undone, unless `chainwright confirm` keeps it"
            ),
            None => "until    the change is not complete yet".to_owned(),
        };
        writeln!(out, "change   {}", Printable(&record.what))?;
        writeln!(out, "by       {}", Printable(&record.by()))?;
        writeln!(out, "since    {}", record.since)?;
        writeln!(out, "{until}")?;
        for table in &record.tables {
            writeln!(out, "table    {}", Printable(table))?;
        }
    }
    out.flush()?;
    Ok(match is_kept {
        true => Exit::Done,
        false => none_waits(record.as_ref()),
    })
}

/// Prints that no change waits, and how the last one ended.
fn none_waits(last: Option<&Record>) -> Exit {
    let Some(last) = last else {
        note("no change waits for a confirmation in this network namespace");
        return Exit::Absent;
    };
    let (what, by) = (Printable(&last.what).to_string(), last.by());
    let reason = last.reason.as_deref().unwrap_or_default();
    let (end, exit) = match last.state {
        State::Kept => ("was kept".to_owned(), Exit::Absent),
        State::Unchanged => ("changed nothing".to_owned(), Exit::Absent),
        State::Undone => (format!("was undone: {reason}"), Exit::Absent),
        State::Failed => (format!("could not be undone: {reason}"), Exit::Failed),
        State::Applying | State::Waiting => (
            format!(
                "was neither confirmed nor undone, because the process that kept the state before ({}) has ended",
                last.keeper
            ),
            Exit::Failed,
        ),
    };
    note(&format!(
        "no change waits for a confirmation; the last one, `{what}` by {}, since {}, {end}",
        Printable(&by),
        last.since
    ));
    exit
}
