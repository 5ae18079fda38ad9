//! `hash`: hashes a value in a register, or the packet's addresses and ports.

use super::context::{check_max, required};
use super::errors::{EOPNOTSUPP, EOVERFLOW, ERANGE};
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Hash, HashRef, HashType};

impl<'a> KernelExpression<'a> for HashRef<'a> {
    type Listed = Hash<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.len(), 255)?;
        match self.hash_type() {
            None | Some(HashType::JENKINS | HashType::SYM) => Ok(()),
            Some(_) => Err(EOPNOTSUPP),
        }
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Hash<'static>, Errno> {
        let hash_type = self.hash_type().unwrap_or(HashType::JENKINS);
        let (dreg, modulus) = (required(self.dreg())?, required(self.modulus())?);
        let mut listed = Hash {
            modulus: Some(modulus),
            offset: self.offset().filter(|offset| *offset != 0),
            hash_type: Some(hash_type),
            ..Default::default()
        };
        if hash_type == HashType::JENKINS {
            let (sreg, len) = (required(self.sreg())?, required(self.len())?);
            if len == 0 {
                return Err(ERANGE);
            }
            listed.sreg = Some(context.load(sreg, len)?);
            listed.len = Some(len);
            listed.seed = self.seed();
        }
        if modulus == 0 {
            return Err(ERANGE);
        }
        let offset = self.offset().unwrap_or(0);
        offset.checked_add(modulus - 1).ok_or(EOVERFLOW)?;
        listed.dreg = Some(context.store(dreg, 4)?);
        Ok(listed)
    }
}
