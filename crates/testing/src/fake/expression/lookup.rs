//! `lookup`: looks up a key of the set's length, and optionally loads the value of a map.

use super::context::{check_flags, check_length, required};
use super::errors::EINVAL;
use super::{Context, KernelExpression, Reference};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Lookup, LookupFlags, LookupRef, Register};
use chainwright::nft::{Name, SetFlags};

impl<'a> KernelExpression<'a> for LookupRef<'a> {
    type Listed = Lookup<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_length(self.set(), 255)?;
        check_flags(
            self.flags().map(|flags| flags.bits()),
            LookupFlags::INV.bits(),
        )
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Lookup<'static>, Errno> {
        let (name, sreg) = (required(self.set())?, required(self.sreg())?);
        let set = context.set(name, self.set_id())?;
        let flags = self.flags().unwrap_or_default();
        let mut listed = Lookup {
            set: Some(Name::from(&set.name[..]).into_owned()),
            sreg: Some(context.load(sreg, set.key_length)?),
            flags: Some(flags),
            ..Default::default()
        };
        let is_map = set.flags.contains(SetFlags::MAP);
        if let Some(dreg) = self.dreg() {
            if flags.contains(LookupFlags::INV) || !is_map {
                return Err(EINVAL);
            }
            listed.dreg = Some(match (set.maps_to_verdicts, dreg) {
                (true, Register::VERDICT) => dreg,
                (true, _) => return Err(context.store(dreg, 1).err().unwrap_or(EINVAL)),
                (false, _) => context.store(dreg, set.data_length)?,
            });
        } else if is_map && set.flags.contains(SetFlags::ANONYMOUS) {
            return Err(EINVAL);
        }
        context.bind(&set, Reference::Set)?;
        Ok(listed)
    }
}
