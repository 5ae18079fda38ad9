//! `flow_offload`: adds the packet's connection to a flowtable, which then forwards its packets
//! past the rest of the network stack.
//!
//! ```text
//! NFTA_FLOW_TABLE_NAME   string
//! ```

use chainwright_sys::nf_tables::NFTA_FLOW_TABLE_NAME;

use super::expression;
use crate::nft::name::Name;

expression! {
    "flow_offload"
    /// Adds the connection to a flowtable (`enum nft_offload_attributes`); for chains of the hook
    /// `forward`.
    pub struct FlowOffload<'a> viewed as FlowOffloadRef {
        /// Name of the flowtable, in the rule's table.
        NFTA_FLOW_TABLE_NAME => table_name: Name<'a>,
    }
}

impl<'a> FlowOffload<'a> {
    /// Adds the connection to this flowtable.
    pub fn new(table_name: impl Into<Name<'a>>) -> Self {
        Self {
            table_name: Some(table_name.into()),
            ..Self::default()
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for FlowOffload<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.table_name {
            Some(name) => write!(f, "[ flow_offload flowtable {name} ]"),
            None => f.write_str("[ flow_offload flowtable (null) ]"),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("flow add @f", FlowOffload::new("f"));
    }
}
