//! `objref`: an object by name, or by key from a map.

use super::base::{FORWARD, INPUT, is_ip};
use super::context::{check_length, required};
use super::errors::{EINVAL, EOPNOTSUPP};
use super::{Base, Context, KernelExpression, Reference};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::SetFlags;
use chainwright::nft::expr::{ObjectType, Objref, ObjrefRef};

impl<'a> KernelExpression<'a> for ObjrefRef<'a> {
    type Listed = Objref<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_length(self.imm_name(), 255)?;
        check_length(self.set_name(), 255)?;
        let names_set = self.set_name().is_some() || self.set_id().is_some();
        let is_mapped = self.set_sreg().is_some() && names_set;
        let is_named = self.imm_name().is_some() && self.imm_type().is_some();
        (is_mapped || is_named).then_some(()).ok_or(EOPNOTSUPP)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Objref<'static>, Errno> {
        if let Some(sreg) = self.set_sreg()
            && (self.set_name().is_some() || self.set_id().is_some())
        {
            let set = context.set(self.set_name().unwrap_or_default(), self.set_id())?;
            if !set.flags.contains(SetFlags::OBJECT) {
                return Err(EINVAL);
            }
            let sreg = context.load(sreg, set.key_length)?;
            context.bind(&set, Reference::Set)?;
            return Ok(Objref::mapped(sreg, &set.name[..]).into_owned());
        }
        let (name, object_type) = (required(self.imm_name())?, required(self.imm_type())?);
        context.around.object(object_type, name)?;
        context
            .references
            .push(Reference::Object(object_type, name.into()));
        Ok(Objref::named(object_type, name).into_owned())
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        if self.imm_type() != Some(ObjectType::SYNPROXY) {
            return Ok(());
        }
        is_ip(family)?;
        base.is_at(&[INPUT, FORWARD])
    }
}
