//! Reads a single chain of a table.

use bstr::BStr;

use super::{Inner, Iptables};
use crate::iptables::nft::decode_into;
use crate::iptables::sets::named;
use crate::iptables::view::{SET_UNKNOWN, references};
use crate::iptables::{ChainKind, Entry, Error, Family, NotExpressible};
use crate::nft::{Family as NftFamily, RuleFilter};

/// A single chain of nf_tables.
pub(in crate::iptables) struct OneChain {
    pub(in crate::iptables) kind: ChainKind,
    /// Number of references to it.
    pub(in crate::iptables) references: u32,
    /// Its rules.
    pub(in crate::iptables) rules: Vec<Result<Entry, NotExpressible>>,
}

impl Iptables {
    /// Reads one chain of nf_tables, at the cost of that chain alone. `None` if the chain does not exist, or
    /// with the legacy backend.
    pub(in crate::iptables) fn one_chain(
        &mut self,
        family: Family,
        table: &str,
        chain: &BStr,
    ) -> Result<Option<OneChain>, Error> {
        let Inner::Nft { connection, .. } = &mut self.inner else {
            return Ok(None);
        };
        let of = NftFamily::from(family);
        let mut attempts = self.retry.begin();
        loop {
            let generation = connection.stable_generation()?;
            let found = connection.chain(of, table, chain)?;
            let Some((kind, uses)) =
                found.map(|found| (ChainKind::of_nft(table.into(), &found), found.references()))
            else {
                return Ok(None);
            };
            let mut rules = Vec::new();
            let listed = connection
                .rules(RuleFilter::chain(of, table, chain))?
                .for_each(|rule| {
                    let mut entry = Entry::default();
                    rules.push(decode_into(&rule, &mut entry).map(|()| entry));
                });
            match listed {
                Err(error) if !error.is_retryable() => return Err(error.into()),
                Ok(()) if connection.generation()? == generation => {}
                _ if attempts.again() => continue,
                _ => {
                    return Err(Error::Contended {
                        attempts: attempts.made(),
                    });
                }
            }
            for line in &mut rules {
                if let Ok(entry) = line
                    && named(&mut entry.rule, &self.sets).is_err()
                {
                    *line = Err(SET_UNKNOWN);
                }
            }
            return Ok(Some(OneChain {
                kind,
                references: references(uses, rules.len()).unwrap_or_default(),
                rules,
            }));
        }
    }
}
