//! Validates jumps: no chain of jumps from a base chain may be too long or contain a loop.

use chainwright_sys::nf_tables::NFT_CHAIN_BASE;

use super::state::{Chain, Reference, Table};
use super::tx_state::TxState;
use super::wire::{Refusal, refuse};

/// Maximum number of chains in a sequence of jumps (`NFT_JUMP_STACK_SIZE`).
const MAX_DEPTH: usize = 16;

impl TxState {
    /// Validates the jumps of a table, if the transaction runs again to find the failing operation.
    pub(super) fn validate_now(&self, number: usize) -> Result<(), Refusal> {
        match self.validates_at_once {
            true => validate(&self.state.tables[number]),
            false => Ok(()),
        }
    }

    /// Validates the jumps of all tables.
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        let tables = self.state.tables.iter();
        let mut tables = tables.filter(|table| !table.is_dead);
        tables.try_for_each(|table| validate(table))
    }
}

fn validate(table: &Table) -> Result<(), Refusal> {
    for (at, chain) in table.chains.iter().enumerate() {
        if !chain.is_dead() && chain.flags & NFT_CHAIN_BASE != 0 {
            let mut depths = vec![None; table.chains.len()];
            follow(table, chain, at, 0, &mut depths)?;
        }
    }
    Ok(())
}

/// Validates the jumps of the chain with this index, reached from a base chain at this depth; a chain that was already
/// reached at the same depth is not validated again.
fn follow(
    table: &Table,
    base: &Chain,
    at: usize,
    depth: usize,
    depths: &mut [Option<usize>],
) -> Result<(), Refusal> {
    if depth == MAX_DEPTH {
        return Err(refuse(libc::EMLINK));
    }
    if depths[at].is_some_and(|known| known >= depth) {
        return Ok(());
    }
    depths[at] = Some(depth);
    let chain = &table.chains[at];
    for slot in chain.rules.iter().filter(|slot| !slot.is_dead) {
        super::program::validate(table, base, &slot.rule)?;
        for &reference in &slot.rule.references {
            match reference {
                Reference::Chain(handle) => enter(table, base, handle, depth, depths)?,
                Reference::Set(handle) => {
                    let set = table.sets.find_any(handle);
                    let elements = set.into_iter().flat_map(|set| set.elements.values());
                    for element in elements {
                        for &reference in &element.references {
                            if let Reference::Chain(handle) = reference {
                                enter(table, base, handle, depth, depths)?;
                            }
                        }
                    }
                }
                Reference::UpdatedSet(_) | Reference::Object(_) | Reference::Flowtable(_) => {}
            }
        }
    }
    Ok(())
}

fn enter(
    table: &Table,
    base: &Chain,
    handle: u64,
    depth: usize,
    depths: &mut [Option<usize>],
) -> Result<(), Refusal> {
    match table.chains.index_of(handle) {
        Some(at) => follow(table, base, at, depth + 1, depths),
        None => Ok(()),
    }
}
