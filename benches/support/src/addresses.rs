//! A map of any size.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::ops::Range;

use crate::BoxError;
use chainwright::netlink::{self, MessageError};
use chainwright::nft::{
    CommitError, Connection, DataType, Element, Family, Set, SetId, Table, Transaction,
};

/// A map from IPv4 addresses to IPv4 addresses, `hosts` in table `ip addresses`, as for a load
/// balancer or a list of translations.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// Number of elements, at most 16,777,216.
    pub elements: usize,
}

const TABLE: &str = "addresses";
const MAP: &str = "hosts";
/// Number of elements in one of several transactions.
const PART: usize = 5_000;

impl Addresses {
    /// Returns the map's identifier for operations on its elements.
    #[must_use]
    pub fn set_id(self) -> SetId<'static> {
        SetId::new(Family::IP, TABLE, MAP)
    }

    /// Returns the family, table and name of the map.
    #[must_use]
    pub const fn map(self) -> (Family, &'static str, &'static str) {
        (Family::IP, TABLE, MAP)
    }

    /// Appends the operations that create the table, the map, and its elements.
    ///
    /// # Errors
    /// Never [`MessageError`] in practice: everything written is short.
    pub fn write(self, tx: &mut Transaction) -> Result<(), MessageError> {
        self.write_map(tx)?;
        self.write_elements(tx, 0..self.elements)
    }

    /// Creates the map: in one transaction, or in several if the send buffer of a user without
    /// privileges is too small for it.
    ///
    /// # Errors
    /// Those of [`Connection::commit`].
    pub fn load(self, nft: &mut Connection) -> Result<(), BoxError> {
        let mut tx = Transaction::new();
        self.write(&mut tx)?;
        match nft.commit(&tx) {
            Err(CommitError {
                source: Some(netlink::Error::TooLarge { .. }),
                ..
            }) => {}
            committed => return Ok(committed?),
        }
        for start in (0..self.elements.max(1)).step_by(PART) {
            tx.clear();
            self.write_map(&mut tx)?;
            self.write_elements(&mut tx, start..(start + PART).min(self.elements))?;
            nft.commit(&tx)?;
        }
        Ok(())
    }

    /// Returns the same ruleset in the language of `nft -f`.
    #[must_use]
    pub fn to_nft(self) -> String {
        let mut text = format!(
            "table ip {TABLE} {{\n\tmap {MAP} {{\n\t\ttype ipv4_addr : ipv4_addr\n\t\telements = {{\n"
        );
        for number in 0..self.elements {
            let (key, value) = (Ipv4Addr::from(key(number)), Ipv4Addr::from(value(number)));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\t\t\t{key} : {value},");
        }
        text.push_str("\t\t}\n\t}\n}\n");
        text
    }

    fn write_map(self, tx: &mut Transaction) -> Result<(), MessageError> {
        tx.add(&Table::new(Family::IP, TABLE))?.add(
            &Set::new(Family::IP, TABLE, MAP, DataType::IPV4_ADDR, 4)
                .with_data(DataType::IPV4_ADDR, 4),
        )?;
        Ok(())
    }

    fn write_elements(
        self,
        tx: &mut Transaction,
        numbers: Range<usize>,
    ) -> Result<(), MessageError> {
        let pairs: Vec<_> = numbers.map(|number| (key(number), value(number))).collect();
        let elements = pairs
            .iter()
            .map(|(key, value)| Element::new(key).with_data(value));
        tx.add_elements(&self.set_id(), elements)?;
        Ok(())
    }
}

/// Returns the key with this number: `10.x.y.z`, all different.
const fn key(number: usize) -> [u8; 4] {
    let [_, a, b, c] = (number as u32).to_be_bytes();
    [10, a, b, c]
}

/// Returns the value with this number: `11.x.y.z`.
const fn value(number: usize) -> [u8; 4] {
    let [_, a, b, c] = (number as u32).to_be_bytes();
    [11, a, b, c]
}
