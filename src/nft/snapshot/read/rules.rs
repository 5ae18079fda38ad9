//! Reads the rules of a snapshot: in one dump, or in one for each chain.

use chainwright_sys::nf_tables::{NFT_MSG_GETRULE, NFTA_RULE_CHAIN, NFTA_RULE_TABLE};

use super::dump::ReplySocket;
use super::{MissingRules, Reader, is_bound, uses};
use crate::netlink::{Error, MessageWriter, Request};
use crate::nft::connection::message_type;
use crate::nft::scope::Scope;
use crate::nft::snapshot::Snapshot;
use crate::nft::snapshot::index::{chain_at, table_at};

/// Maximum use count of a short chain.
pub(super) const SHORT_CHAIN_USES: u32 = 8;

/// Minimum number of short chains for a second socket.
pub(super) const MIN_SHORT_CHAINS: usize = 64;

/// Approximate cost of a dump of rules in the kernel, beyond sending them, in nanoseconds. Only the ratio matters.
/// Measured on Linux 6.18 with the rules of kube-proxy; with 10,000 of its chains the two ways cost the same.
pub(super) mod cost {
    /// A request and its replies.
    const REQUEST: u64 = 4_600;
    /// Skipping a rule that was already sent.
    const PASS: u64 = 9;
    /// Number of rules per datagram of 32 KiB.
    const DATAGRAM: u64 = 48;

    /// Returns the cost of one dump of the rules of chains with this total use count: typically there are three
    /// references for five rules.
    pub(super) const fn of_dump(uses: u64) -> u64 {
        let rules = uses.saturating_mul(5) / 8;
        (rules.saturating_mul(rules) / (2 * DATAGRAM))
            .saturating_mul(PASS)
            .saturating_add(REQUEST)
    }
}

/// The way to request the rules of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// One dump of all rules.
    Whole,
    /// One dump for each chain.
    ByChain,
}

impl Reader<'_> {
    /// Reads all rules in the cheapest way.
    pub(super) fn rules(&mut self, scope: &Scope<'_>) -> Result<(), Error> {
        let plans = self.plans()?;
        if scope.table.is_none() && !plans.iter().any(|plan| plan.0 == Plan::ByChain) {
            let rules = plans.iter().map(|plan| plan.1).sum();
            // One dump per table may be cheaper than one for all.
            let apart: u64 = plans.iter().map(|plan| cost::of_dump(plan.1)).sum();
            if cost::of_dump(rules) <= apart {
                return self.dump(
                    ReplySocket::Long,
                    "list rules",
                    self.rules_request,
                    scope.family,
                    |_| {},
                    |_| true,
                );
            }
        }
        for (table, (plan, _)) in plans.into_iter().enumerate() {
            match plan {
                // Even if all use counts are 0: an uncommitted transaction of another process changes the counts.
                Plan::Whole => {
                    let at = self.snapshot.index.tables[table].at;
                    let (family, name) = {
                        let table = table_at(&self.snapshot.arena, at)?;
                        (table.family(), table.name().to_vec())
                    };
                    let content = |writer: &mut MessageWriter<'_>| {
                        writer.string(NFTA_RULE_TABLE, &name);
                    };
                    self.dump(
                        ReplySocket::Long,
                        "list rules",
                        self.rules_request,
                        family,
                        content,
                        |_| true,
                    )?;
                }
                Plan::ByChain => {
                    let Snapshot { index, arena, .. } = &self.snapshot;
                    let lacks_jumps = index.lacks_jumps(arena, table, self.snapshot.elements)?;
                    // A truncated reply would lose what it resets.
                    let is_reset = self.rules_request != NFT_MSG_GETRULE;
                    let reply_socket = (lacks_jumps || is_reset).then_some(ReplySocket::Long);
                    for chain in 0..self.snapshot.index.tables[table].chains.len() {
                        self.rules_of(table, chain, reply_socket)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the way to request the rules of each table, and an upper bound of their number.
    pub(super) fn plans(&mut self) -> Result<Vec<(Plan, u64)>, Error> {
        let mut plans = Vec::with_capacity(self.snapshot.index.tables.len());
        let Snapshot { index, arena, .. } = &self.snapshot;
        for (number, table) in index.tables.iter().enumerate() {
            let (mut rules, mut by_chain, mut short) = (0, 0, 0);
            for chain in &table.chains {
                let count = uses(&chain_at(&self.snapshot.arena, chain.at)?);
                rules += u64::from(count);
                by_chain += cost::of_dump(count.into());
                short += usize::from(count <= SHORT_CHAIN_USES);
            }
            let plan = match by_chain < cost::of_dump(rules) {
                true => Plan::ByChain,
                false => Plan::Whole,
            };
            // A reply that was too short is detectable only if all jumps are known.
            let lacks_jumps = index.lacks_jumps(arena, number, self.snapshot.elements)?;
            if plan == Plan::ByChain
                && short >= MIN_SHORT_CHAINS
                && self.short.is_none()
                && !lacks_jumps
            {
                self.short = self.connection.session.socket.sibling();
            }
            plans.push((plan, rules));
        }
        Ok(plans)
    }

    /// Reads the rules of one chain; without a `reply_socket` its length determines the socket.
    pub(in crate::nft::snapshot) fn rules_of(
        &mut self,
        table: usize,
        chain: usize,
        reply_socket: Option<ReplySocket>,
    ) -> Result<(), Error> {
        let Self {
            connection,
            snapshot,
            short,
            rules_request,
            ..
        } = self;
        let at = snapshot.index.tables[table].chains[chain].at;
        let view = chain_at(&snapshot.arena, at)?;
        let count = uses(&view);
        snapshot.index.expect_rules(&view, table, chain);
        let reply_socket = reply_socket.unwrap_or(match short {
            Some(_) if count <= SHORT_CHAIN_USES => ReplySocket::Short,
            _ => ReplySocket::Long,
        });
        let request = Request::new("list rules", message_type(*rules_request));
        let family = view.family().0;
        let dump = connection.session.build_dump(&request, family, |writer| {
            writer
                .string(NFTA_RULE_TABLE, view.table())
                .string(NFTA_RULE_CHAIN, view.name());
        })?;
        self.receive(reply_socket, dump, |_| true)
    }

    /// Checks that every chain has all its rules; returns the first that lacks some. Requests chains of the socket with
    /// small replies again over the other socket.
    pub(super) fn complete(&mut self) -> Result<Option<MissingRules>, Error> {
        for table in 0..self.snapshot.index.tables.len() {
            let (mut handle, mut expected, mut bound) = (0, 0, 0);
            for chain in &self.snapshot.index.tables[table].chains {
                let view = chain_at(&self.snapshot.arena, chain.at)?;
                // A duplicate or descending handle: the dump was shifted.
                if view.handle() <= handle || chain.broken {
                    self.consistent = false;
                    return Ok(None);
                }
                handle = view.handle();
                expected += u64::from(uses(&view));
                bound += u64::from(is_bound(&view));
            }
            let found = self.snapshot.index.tables[table].uses;
            if found == expected || found + bound == expected {
                continue;
            }
            if self.short.is_some() {
                for (chain, _) in self.incomplete(table)? {
                    let index = &mut self.snapshot.index;
                    index.forget_rules(&self.snapshot.arena, table, chain)?;
                    self.rules_of(table, chain, Some(ReplySocket::Long))?;
                }
            }
            let incomplete = self.incomplete(table)?;
            let timed_out = self.snapshot.index.timed_out(&self.snapshot.arena, table)?;
            let (mut missing, mut surplus, mut first) = (0, false, None);
            for (chain, found) in incomplete {
                let chain = self.snapshot.index.tables[table].chains[chain].at;
                let view = chain_at(&self.snapshot.arena, chain)?;
                let expected = uses(&view);
                missing += u64::from(expected).saturating_sub(found);
                surplus |= found > expected.into();
                first.get_or_insert_with(|| MissingRules {
                    chain: view.to_string(),
                    found,
                    expected,
                });
            }
            if surplus || missing > timed_out {
                return Ok(first);
            }
        }
        Ok(None)
    }

    /// Returns the chains of a table whose rules and jumps don't match the use count, with the number that was found.
    /// If jumps were left out, missing ones are ignored.
    pub(in crate::nft::snapshot) fn incomplete(
        &self,
        table: usize,
    ) -> Result<Vec<(usize, u64)>, Error> {
        let Snapshot { index, arena, .. } = &self.snapshot;
        let lacks_jumps = index.lacks_jumps(arena, table, self.snapshot.elements)?;
        let found = index.uses(arena, table)?;
        let mut incomplete = Vec::new();
        for (number, found) in found.into_iter().enumerate() {
            let chain = self.snapshot.index.tables[table].chains[number].at;
            let view = chain_at(&self.snapshot.arena, chain)?;
            let expected = u64::from(uses(&view));
            let adds_up = found == expected
                || found + u64::from(is_bound(&view)) == expected
                || found < expected && lacks_jumps;
            if !adds_up {
                incomplete.push((number, found));
            }
        }
        Ok(incomplete)
    }
}
