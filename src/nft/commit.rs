//! Committing a transaction, and the errors of a commit.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt;

use bstr::BString;

use super::Family;
use super::committed::{Committed, EchoCollector};
use super::connection::Connection;
use super::explain::diagnose::{View, is_diagnosable, needs_rules, reason};
use super::explain::{Operation, attribute_at, describe, hint};
use super::feature::{Feature, missing_feature};
use super::generation::{Generation, Origin};
use super::groups::{UNUSED, unused};
use super::transaction::{END, Echo, Transaction};
use crate::errno::Errno;
use crate::error::{Class, ErrorKind};
use crate::netlink::{self, BatchReplies, BatchStatus, DatagramReceiver, Loss, Message, Rejection};

/// State of the ruleset after a failed commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was applied: the ruleset is unchanged by the transaction.
    NothingApplied,
    /// Unknown: replies were lost, and the generation changed in the meantime, by this transaction or another, or could
    /// not be read. Either everything was applied or nothing; read the ruleset to find out.
    Unknown,
}

/// A failed operation, or a failure of the commit as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The operation; `None` if the kernel accepted each operation but rejected the commit.
    pub operation: Option<Operation>,
    /// The kernel's error number.
    pub errno: Errno,
    /// The kernel's error text, if any.
    pub text: Option<BString>,
    /// The attribute that caused the error, as a path of names.
    pub attribute: Option<String>,
    /// The feature required by the operation and missing in this kernel, if that caused the error.
    pub lacks: Option<Feature>,
    /// The cause of this error and its remedy: the one that the ruleset shows, read after the refusal, or else the most
    /// common one.
    pub hint: Option<Cow<'static, str>>,
}

impl Failure {
    fn class(&self) -> Class {
        let class = Class::of_operation(self.errno);
        match self.lacks {
            Some(_) => Class {
                kind: ErrorKind::Unsupported,
                ..class
            },
            None => class,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operation {
            Some(operation) => write!(f, "{operation}: {}", self.errno)?,
            None => write!(f, "the whole transaction: {}", self.errno)?,
        }
        if let Some(text) = &self.text {
            write!(f, ": {text}")?;
        }
        if let Some(attribute) = &self.attribute {
            write!(f, ", at {attribute}")?;
        }
        match (self.lacks, &self.hint) {
            (Some(feature), _) => write!(f, " (this kernel lacks {feature})"),
            (None, Some(hint)) => write!(f, " ({hint})"),
            (None, None) => Ok(()),
        }
    }
}

/// An error for a transaction that was not applied, or whose outcome is unknown.
#[non_exhaustive]
pub struct CommitError {
    /// State of the ruleset.
    pub outcome: Outcome,
    /// The failures reported by the kernel, in the order of the operations.
    pub failures: Vec<Failure>,
    /// Whether the kernel dropped error reports, so that more operations may have failed.
    pub incomplete: bool,
    /// The error in communicating with the kernel, if any.
    pub source: Option<netlink::Error>,
    condition: Condition,
}

crate::debug_as_message!(CommitError);

crate::classified!(CommitError, |error| {
    let undone = error.outcome == Outcome::NothingApplied;
    let class = match (error.failures.first(), &error.source) {
        _ if error.generation_moved() => Class {
            kind: ErrorKind::Retryable,
            errno: Some(Errno::new(libc::ERESTART)),
        },
        (Some(failure), _) => failure.class(),
        (None, Some(source)) => source.class(),
        (None, None) => ErrorKind::Invalid.into(),
    };
    match class.kind {
        // Sent again, it could be applied twice.
        ErrorKind::Retryable if !undone => Class {
            kind: ErrorKind::Other,
            ..class
        },
        _ => class,
    }
});

/// The condition of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    None,
    /// A generation of the connection's namespace.
    Generation,
    /// A generation of another namespace, or from a file.
    Foreign(Generation),
}

impl CommitError {
    /// Creates the error of a transaction whose operation with this index is refused.
    pub(super) fn of_operation(index: usize, message: &Message<'_>, errno: Errno) -> Self {
        let operation = describe(index, message);
        Self {
            outcome: Outcome::NothingApplied,
            failures: vec![Failure {
                hint: hint(errno, Some(&operation), None).map(Into::into),
                operation: Some(operation),
                errno,
                text: None,
                attribute: None,
                lacks: None,
            }],
            incomplete: false,
            source: None,
            condition: Condition::None,
        }
    }

    /// Returns `true` if the batch can be sent again to get the lost error reports.
    fn can_resend(&self, batch: Batch) -> bool {
        let undone = self.outcome == Outcome::NothingApplied || batch == Batch::WithoutEnd;
        let lost = self
            .source
            .as_ref()
            .is_some_and(netlink::Error::is_retryable);
        undone && lost && self.failures.is_empty()
    }

    /// Returns `true` if the kernel rejected operations for another reason than the generation.
    #[doc(hidden)]
    pub fn is_refusal(&self) -> bool {
        let undone = self.outcome == Outcome::NothingApplied;
        undone && !self.failures.is_empty() && !self.generation_moved()
    }

    /// Returns `true` if the commit was conditional on an outdated generation. Nothing was applied; read the ruleset
    /// again and retry.
    #[must_use]
    pub fn generation_moved(&self) -> bool {
        self.condition == Condition::Generation
            && self
                .failures
                .iter()
                .any(|failure| failure.errno.number() == libc::ERESTART)
    }
}

impl CommitError {
    /// Returns `true` if the commit was conditional on a generation of another network namespace or connection, or on
    /// one from a file, which cannot be compared with this ruleset. Nothing was sent.
    #[must_use]
    pub const fn generation_is_foreign(&self) -> bool {
        matches!(self.condition, Condition::Foreign(_))
    }
}

/// Maximum number of failures printed by the `Display` of [`CommitError`]; the field has all.
pub(super) const MAX_PRINTED: usize = 20;

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Condition::Foreign(generation) = self.condition {
            let of = match generation.origin() {
                Origin::Recorded => "was read from a file",
                Origin::Namespace(_) => "is of another network namespace",
                Origin::Connection(_) => "was read over another connection",
            };
            return write!(
                f,
                "the transaction is for generation {generation}, which {of} and cannot be compared with \
                 this ruleset; nothing was applied"
            );
        }
        match self.outcome {
            Outcome::NothingApplied if self.generation_moved() => {
                return f.write_str(
                    "the ruleset changed since it was read; nothing was applied: read it again and \
                     retry",
                );
            }
            Outcome::NothingApplied => f.write_str("the transaction was not applied")?,
            Outcome::Unknown => f.write_str(
                "it is unknown whether the transaction was applied (completely or not at all): \
                 the kernel's reply was lost, and the generation changed or could not be read; read the \
                 ruleset to find out",
            )?,
        }
        match self.failures.len() {
            0 => {}
            1 => f.write_str("; one failure")?,
            n => write!(f, "; {n} failures")?,
        }
        match &self.source {
            // The failure has the same error number.
            Some(netlink::Error::Refused { .. }) if !self.failures.is_empty() => {}
            Some(source) => write!(f, ": {source}")?,
            None => {}
        }
        if self.incomplete {
            f.write_str(" (and perhaps more: the kernel dropped reports)")?;
        }
        for failure in self.failures.iter().take(MAX_PRINTED) {
            write!(f, "\n  {failure}")?;
        }
        if self.failures.len() > MAX_PRINTED {
            write!(f, "\n  and {} more", self.failures.len() - MAX_PRINTED)?;
        }
        Ok(())
    }
}

impl std::error::Error for CommitError {}

/// Replaces the hints of the failures by the reasons that a ruleset shows. `view` returns the ruleset before the
/// transaction: at least these tables, and their rules if the flag is set.
pub(super) fn diagnose(
    transaction: &Transaction,
    failures: &mut [Failure],
    view: impl FnOnce(&BTreeSet<(Family, BString)>, bool) -> Option<View>,
) {
    if let [whole] = &mut *failures
        && (whole.errno.number(), &whole.operation) == (libc::EINVAL, &None)
        && let [unused, ..] = &unused(transaction)[..]
    {
        // The kernel detects this at the end of the transaction.
        whole.hint = Some(Cow::Owned(format!("{unused}: {UNUSED}")));
    }
    let index = |failure: &Failure| Some(failure.operation.as_ref()?.index);
    let refused: HashSet<usize> = failures.iter().filter_map(index).collect();
    let failures = failures.iter_mut().take(MAX_PRINTED);
    let mut failures: Vec<_> = failures
        .filter(|failure| failure.lacks.is_none())
        .filter(|failure| is_diagnosable(failure.errno, failure.operation.as_ref()))
        .collect();
    let operations = failures.iter().filter_map(|failure| {
        let operation = failure.operation.as_ref()?;
        Some((failure.errno, operation))
    });
    let mut with_rules = false;
    let mut tables = BTreeSet::new();
    for (errno, operation) in operations {
        with_rules |= needs_rules(errno, operation);
        let table = operation.path.first();
        tables.extend(table.map(|table| (operation.family, table.clone())));
    }
    if tables.is_empty() {
        return;
    }
    let Some(mut view) = view(&tables, with_rules) else {
        return;
    };
    let mut failures = failures.iter_mut().peekable();
    for (index, message) in transaction.messages().enumerate() {
        let is_refused = |failure: &&mut &mut Failure| {
            let operation = failure.operation.as_ref();
            operation.is_some_and(|operation| operation.index == index)
        };
        match failures.next_if(is_refused) {
            Some(failure) => {
                if let Some(reason) = reason(&mut view, index, &message, failure.errno) {
                    failure.hint = Some(Cow::Owned(reason));
                }
            }
            None if !refused.contains(&index) => view.apply(&message),
            None => {}
        }
        if failures.peek().is_none() {
            break;
        }
    }
}

/// Bytes of the receive buffer per error report, including the kernel's overhead.
const REPORT_SIZE: usize = 1024;
/// Maximum bytes of the receive buffer reserved for error reports.
const MAX_REPORTS_SIZE: usize = 16 * 1024 * 1024;

/// Number of receive errors after which reading the replies to a batch stops.
const MAX_RECEIVE_ERRORS: u32 = 4;

/// The form in which a transaction is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch {
    /// The whole transaction, to be applied.
    Whole,
    /// Without the final message that commits the batch, so that the kernel aborts it.
    WithoutEnd,
}

impl Connection {
    /// Commits a transaction: applies all of its operations, or none.
    ///
    /// The kernel applies it before this returns. An empty transaction does nothing. The transaction itself is not
    /// changed and can be committed again.
    ///
    /// # Errors
    /// [`CommitError`]: its [`outcome`](CommitError::outcome) is the state of the ruleset, its
    /// [`failures`](CommitError::failures) are the failed operations. If the kernel refused operations, this reads the
    /// tables concerned (their rules only where they matter), to name the reason in [`Failure::hint`].
    #[tracing::instrument(level = "debug", skip_all, fields(
        operations = transaction.len(),
        bytes = transaction.byte_length(),
    ))]
    pub fn commit(&mut self, transaction: &Transaction) -> Result<(), CommitError> {
        self.send_batch_retrying(transaction, Batch::Whole, None)
    }

    /// Commits a transaction like [`commit`](Self::commit) and returns the kernel's echo: the new generation, and the
    /// handles and names of the added objects, by operation.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::expr::Immediate;
    /// use chainwright::nft::{Chain, Connection, Family, Rule, Table, Transaction};
    ///
    /// let mut nft = Connection::open()?;
    /// let rule = Rule::new(Family::INET, "mine", "web").with(&Immediate::accept());
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::INET, "mine"))?;
    /// tx.add(&Chain::new(Family::INET, "mine", "web"))?;
    /// tx.add(&rule)?;
    /// let committed = nft.commit_echo(&tx)?;
    /// assert_eq!(committed.generation(), Some(nft.generation()?));
    ///
    /// // Delete the rule, operation 2, by its handle.
    /// let mut tx = Transaction::new();
    /// tx.delete(&Rule { handle: committed.handle(2), ..rule })?;
    /// nft.commit(&tx)?;
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    ///
    /// The kernel builds and queues a message for each object, which `commit` avoids; for large transactions this is
    /// most of the time. The kernel drops messages that do not fit the receive buffer. The commit is still valid, and
    /// [`Committed::missing`] lists the operations without a message.
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit).
    /// Same as [`commit`](Self::commit).
    #[tracing::instrument(level = "debug", skip_all, fields(
        operations = transaction.len(),
        bytes = transaction.byte_length(),
    ))]
    pub fn commit_echo(&mut self, transaction: &Transaction) -> Result<Committed, CommitError> {
        let mut transaction = transaction.clone();
        transaction.request_echo(Echo::Added);
        self.commit_with_echo(&transaction)
    }

    fn commit_with_echo(&mut self, transaction: &Transaction) -> Result<Committed, CommitError> {
        let mut echoes = EchoCollector::new(self.port());
        self.send_batch_retrying(transaction, Batch::Whole, Some(&mut echoes))?;
        Ok(echoes.finish(transaction))
    }

    /// Commits a transaction and returns the new generation; `None` if it creates none, or its echo was lost.
    #[doc(hidden)]
    pub fn commit_returning_generation(
        &mut self,
        transaction: &mut Transaction,
    ) -> Result<Option<Generation>, CommitError> {
        match transaction.expected_generation() {
            // The commit succeeds only if no other generation is in between.
            Some(expected) if transaction.creates_generation() => {
                self.commit(transaction)?;
                Ok(Some(expected.next()))
            }
            _ => {
                transaction.request_echo(Echo::Generation);
                Ok(self.commit_with_echo(transaction)?.generation())
            }
        }
    }

    /// Checks a transaction without applying it, like `nft --check`: the kernel tries every operation and then reverts
    /// all. The ruleset and its generation do not change.
    ///
    /// A later commit can still fail, because other processes may change the ruleset in between.
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit); nothing is ever applied.
    pub fn check(&mut self, transaction: &Transaction) -> Result<(), CommitError> {
        let result = self.send_batch_retrying(transaction, Batch::WithoutEnd, None);
        result.map_err(|error| CommitError {
            outcome: Outcome::NothingApplied,
            ..error
        })
    }

    /// Sends a batch, and sends it again while nothing was applied and the kernel's error reports were lost.
    fn send_batch_retrying(
        &mut self,
        transaction: &Transaction,
        batch: Batch,
        mut echoes: Option<&mut EchoCollector>,
    ) -> Result<(), CommitError> {
        let mut attempts = self.session.retry.begin();
        let batch = if self.check_only {
            Batch::WithoutEnd
        } else {
            batch
        };
        loop {
            let mut sent = self.send_batch(transaction, batch, echoes.as_deref_mut());
            if let Err(error) = &mut sent
                && error.is_refusal()
                && self.diagnoses
            {
                self.diagnose(transaction, &mut error.failures);
            }
            match sent {
                Err(error) if error.can_resend(batch) && attempts.retry_after_loss() => {}
                Err(error) if self.check_only => {
                    return Err(CommitError {
                        outcome: Outcome::NothingApplied,
                        ..error
                    });
                }
                sent => return sent,
            }
        }
    }

    /// Makes every later commit only a [check](Self::check), or disables that again. While enabled, the generation
    /// returned by a commit is meaningless.
    #[doc(hidden)]
    pub const fn set_check_only(&mut self, yes: bool) {
        self.check_only = yes;
    }

    /// Sets whether a commit reads the generation before it sends the batch; it does by default. A commit that does not
    /// is faster, and returns [`Outcome::Unknown`] if its reply is lost. For callers that then read their table again.
    #[doc(hidden)]
    pub const fn set_compares_generations(&mut self, yes: bool) {
        self.compares_generations = yes;
    }

    /// Sets whether a refused commit reads the ruleset to name the reason; it does by default. For callers that do not
    /// show hints.
    #[cfg(feature = "iptables")]
    pub(crate) const fn set_diagnoses(&mut self, yes: bool) {
        self.diagnoses = yes;
    }

    fn send_batch(
        &mut self,
        transaction: &Transaction,
        batch: Batch,
        mut echoes: Option<&mut EchoCollector>,
    ) -> Result<(), CommitError> {
        if transaction.is_empty() {
            return Ok(());
        }
        let condition = match transaction.expected_generation() {
            Some(_) => Condition::Generation,
            None => Condition::None,
        };
        if let Some(expected) = transaction.expected_generation()
            && expected.origin() != self.origin
        {
            return Err(CommitError {
                outcome: Outcome::NothingApplied,
                failures: Vec::new(),
                incomplete: false,
                source: None,
                condition: Condition::Foreign(expected),
            });
        }
        let not_sent = |source: netlink::Error| {
            let failures = match &source {
                // Without permission, reading the generation already fails, before the batch is sent.
                netlink::Error::Refused { errno, text, .. } => vec![Failure {
                    operation: None,
                    errno: *errno,
                    text: text.as_deref().map(BString::from),
                    attribute: None,
                    lacks: None,
                    hint: hint(*errno, None, None).map(Cow::Borrowed),
                }],
                _ => Vec::new(),
            };
            CommitError {
                outcome: Outcome::NothingApplied,
                failures,
                incomplete: false,
                source: Some(source),
                condition,
            }
        };
        let reports = transaction
            .len()
            .saturating_mul(REPORT_SIZE)
            .min(MAX_REPORTS_SIZE);
        let space = echoes
            .as_ref()
            .map_or(0, |_| EchoCollector::space(transaction));
        self.session.socket.reserve_receive(reports.max(space));
        // To be compared if the reply is lost.
        let before = match transaction.expected_generation() {
            None if self.compares_generations
                || echoes.is_some()
                || self.acknowledges_ends != Some(true) =>
            {
                Some(self.generation().map_err(not_sent)?)
            }
            expected => expected,
        };
        if let (Some(echoes), Some(before)) = (&mut echoes, before) {
            echoes.begin(transaction.len(), before);
        }
        self.session.drain();
        // Replies to requests that failed midway: their sequence numbers may be those of the batch.
        self.session.discard_replies();
        let socket = &mut self.session.socket;
        transaction
            .datagram(|datagram| {
                let datagram = match batch {
                    Batch::Whole => datagram,
                    Batch::WithoutEnd => &datagram[..datagram.len() - END],
                };
                socket.reserve_send(datagram.len())?;
                socket.send(datagram)
            })
            .map_err(not_sent)?;

        let (replies, mut first_error) = self.replies(transaction, echoes);
        if replies.complete() {
            self.acknowledges_ends = Some(true);
        }
        let replies = replies.finish();
        let outcome = match replies.status {
            BatchStatus::Applied => return Ok(()),
            BatchStatus::Rejected => Outcome::NothingApplied,
            // The end was not sent, and no operation failed.
            BatchStatus::Acknowledged if batch == Batch::WithoutEnd => return Ok(()),
            BatchStatus::Acknowledged | BatchStatus::Unknown => {
                match before.map(|before| Ok(self.generation()? == before)) {
                    // Every commit that changes something increments the generation.
                    Some(Ok::<_, netlink::Error>(true)) => match replies.status {
                        BatchStatus::Acknowledged if !self.acknowledges_ends() => return Ok(()),
                        _ => Outcome::NothingApplied,
                    },
                    Some(Ok(false)) if replies.status == BatchStatus::Acknowledged => {
                        return Ok(());
                    }
                    _ => Outcome::Unknown,
                }
            }
        };
        if first_error.is_none() && replies.rejections.is_empty() {
            first_error = Some(netlink::Error::Lost(Loss::MissingReply));
        }
        Err(CommitError {
            outcome,
            failures: explain(transaction, replies.rejections),
            incomplete: replies.lost,
            source: first_error,
            condition,
        })
    }

    /// Replaces the hints of the failures by the reasons that the ruleset shows.
    pub(super) fn diagnose(&mut self, transaction: &Transaction, failures: &mut [Failure]) {
        diagnose(transaction, failures, |tables, with_rules| {
            let before = self.generation().ok();
            let view = View::read(self, tables, with_rules);
            // After a change by another program it may not show why.
            (self.generation().ok() == before).then_some(view)
        });
    }

    /// Reads the replies to a batch, which are all queued when sending returns. Returns the replies and the first
    /// receive error.
    fn replies(
        &mut self,
        transaction: &Transaction,
        echoes: Option<&mut EchoCollector>,
    ) -> (BatchReplies, Option<netlink::Error>) {
        let mut receiver = BatchReplyReceiver {
            buffer: &mut self.session.buffer,
            echoes,
            replies: BatchReplies::new(transaction.sequences()),
            first_error: None,
            errors: 0,
            ended: false,
        };
        let taken = self.session.socket.receive_all(&mut receiver);
        let (replies, first_error) = (receiver.replies, receiver.first_error);
        (replies, first_error.or(taken.err()))
    }

    /// Returns `true` if the kernel acknowledges the end of a batch, as it does since Linux 6.10. If unknown, sends an
    /// empty batch, which changes nothing, to find out.
    fn acknowledges_ends(&mut self) -> bool {
        if let Some(known) = self.acknowledges_ends {
            return known;
        }
        let mut known = false;
        let empty = Transaction::new();
        let sent = empty.datagram(|datagram| self.session.socket.send(datagram));
        if sent.is_ok() {
            known = self.replies(&empty, None).0.complete();
            self.acknowledges_ends = Some(known);
        }
        known
    }
}

/// Receives the replies to a batch.
struct BatchReplyReceiver<'c> {
    buffer: &'c mut [u8],
    replies: BatchReplies,
    echoes: Option<&'c mut EchoCollector>,
    /// The first error.
    first_error: Option<netlink::Error>,
    errors: u32,
    /// Whether the queue is empty.
    ended: bool,
}

impl DatagramReceiver for BatchReplyReceiver<'_> {
    fn is_complete(&self) -> bool {
        self.ended || self.replies.complete()
    }

    fn space(&mut self) -> Result<&mut [u8], netlink::Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), netlink::Error> {
        let datagram = &self.buffer[..length];
        let accepted = self.replies.accept(datagram);
        if let Some(echoes) = &mut self.echoes {
            if echoes.accept(datagram) {
                self.replies.record_echo();
            }
            if accepted.is_err() {
                echoes.record_loss();
            }
        }
        if let Err(malformed) = accepted {
            self.first_error.get_or_insert(malformed.into());
        }
        Ok(())
    }

    fn record_loss(&mut self, error: netlink::Error) -> Result<(), netlink::Error> {
        match error {
            // All replies are already queued, so an empty queue means that no more will come.
            netlink::Error::Lost(Loss::MissingReply) => self.ended = true,
            // The decisive reply may still be queued.
            error => {
                self.replies.record_loss();
                if let Some(echoes) = &mut self.echoes {
                    echoes.record_loss();
                }
                self.first_error.get_or_insert(error);
                self.errors += 1;
                self.ended = self.errors == MAX_RECEIVE_ERRORS;
            }
        }
        Ok(())
    }
}

/// Converts the kernel's error reports to failures.
fn explain(transaction: &Transaction, rejections: Vec<Rejection>) -> Vec<Failure> {
    let mut failures = Vec::with_capacity(rejections.len());
    let mut rest = transaction.operations();
    let mut index = 0;
    let mut message: Option<Message<'_>> = None;
    for rejection in rejections {
        let mut operation = None;
        let mut attribute = None;
        let mut lacks = None;
        if let Some(wanted) = rejection.operation {
            // Reports are in the order of the operations, so one pass finds all.
            while message.is_none() || index <= wanted {
                match Message::split(rest) {
                    Ok((next, after)) => {
                        (message, rest) = (Some(next), after);
                        index += 1;
                    }
                    Err(_) => break,
                }
            }
            if let Some(message) = message.as_ref().filter(|_| index == wanted + 1) {
                let described = describe(wanted, message);
                lacks = missing_feature(rejection.errno, message);
                operation = Some(described);
                attribute = rejection
                    .attribute_offset
                    .and_then(|offset| attribute_at(message, offset));
            }
        }
        failures.push(Failure {
            hint: hint(rejection.errno, operation.as_ref(), attribute.as_deref())
                .map(Cow::Borrowed),
            operation,
            errno: rejection.errno,
            text: rejection.text,
            attribute,
            lacks,
        });
    }
    failures
}
