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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{Wire, assert_element, assert_layout, assert_listed};

    #[test]
    fn layout() {
        let layout = [(1, "NFTA_FLOW_TABLE_NAME", Wire::Text)];
        assert_layout::<FlowOffload<'_>>(FlowOffload::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c flow add @f`. Captured when it was sent; the kernel at hand,
    /// which has no flowtables, refused it.
    #[test]
    fn a_flow_table() {
        assert_element(
            Decoded::FlowOffload,
            FlowOffload::new("f"),
            "
                24000180                                      ; NFTA_LIST_ELEM
                11000100 666c6f77 5f6f6666 6c6f6164 00000000  ;   NFTA_EXPR_NAME: flow_offload
                0c000280                                      ;   NFTA_EXPR_DATA
                06000100 66000000                             ;     NFTA_FLOW_TABLE_NAME
            ",
        );
    }

    /// Not captured (see above) but built from the header: the same without `NLA_F_NESTED`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::FlowOffload,
            FlowOffload::new("f"),
            "
                24000100 11000100 666c6f77 5f6f6666 6c6f6164 00000000 0c000200 06000100
                66000000
            ",
        );
    }

    /// The output of libnftnl 1.2.4 for these bytes, and without attributes.
    #[test]
    fn bytecode() {
        assert_eq!(
            FlowOffload::new("f").to_string(),
            "[ flow_offload flowtable f ]"
        );
        assert_eq!(
            FlowOffload::default().to_string(),
            "[ flow_offload flowtable (null) ]"
        );
    }
}
