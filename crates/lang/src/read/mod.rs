//! Translates kernel objects to syntax trees.
//!
//! A rule is read expression by expression ([`rule`]). Loads put syntax trees into the [`registers`]; comparisons,
//! lookups and statements turn them into parts of the rule. The [`context`] holds the protocols established so far.

pub(crate) mod compare;
pub(crate) mod context;
pub(crate) mod fields;
pub(crate) mod loads;
pub(crate) mod lookups;
pub(crate) mod registers;
pub(crate) mod rule;
pub(crate) mod set;
pub(crate) mod tunnel;

#[cfg(test)]
mod tests {
    use crate::{Options, Script, rule};
    use chainwright::netlink::Message;
    use chainwright::nft::{Family, RuleRef, Scope, Transaction};
    use chainwright_testing::FakeKernel;

    /// Most kernels are built without DCCP options, so there is no reference listing; this test reads the generated
    /// messages.
    #[test]
    fn dccp_options_round_trip_through_compile() {
        let mut nft = FakeKernel::new().connect().unwrap();
        let mut tx = Transaction::new();
        tx.add(&chainwright::nft::Table::new(Family::INET, "t"))
            .unwrap();
        nft.commit(&tx).unwrap();
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let table = snapshot.tables().next().unwrap();
        for words in ["dccp option 42 exists", "dccp option 0 missing accept"] {
            // With a handle, like rules from the kernel.
            let text = format!("replace rule inet t c handle 7 {words}");
            let script = Script::parse("t.nft", text).unwrap();
            let change = script.transaction(None).unwrap();
            let sent = change.transaction().datagram(<[u8]>::to_vec);
            let (_, rest) = Message::split(&sent).unwrap(); // begin of the batch
            let (message, _) = Message::split(rest).unwrap();
            let made = RuleRef::parse(&message).unwrap();
            let printed = rule(&table, &made, &Options::default());
            assert_eq!(printed.as_deref(), Some(words));
        }
    }
}
