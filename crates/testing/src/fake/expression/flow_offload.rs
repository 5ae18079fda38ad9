//! `flow_offload`: refers to a flowtable of the table.

use super::base::{FORWARD, is_ip};
use super::context::{check_length, required};
use super::{Base, Context, KernelExpression, Reference};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::Name;
use chainwright::nft::expr::{FlowOffload, FlowOffloadRef};

impl<'a> KernelExpression<'a> for FlowOffloadRef<'a> {
    type Listed = FlowOffload<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_length(self.table_name(), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<FlowOffload<'static>, Errno> {
        let name = required(self.table_name())?;
        context.around.flowtable(name)?;
        context.references.push(Reference::Flowtable(name.into()));
        Context::conntrack(context.family())?;
        Ok(FlowOffload {
            table_name: Some(Name::from(name).into_owned()),
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        is_ip(family)?;
        base.is_at(&[FORWARD])
    }
}
