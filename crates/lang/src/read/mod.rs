//! From what the kernel has to sentences of nft's language.
//!
//! A rule is read instruction by instruction ([`rule`]): what is loaded stands in the [`registers`] as an expression,
//! until a comparison, a look-up or a statement makes a part of the rule of it. The [`context`] is what the rule has
//! found out about its packets so far.

mod compare;
mod context;
mod fields;
mod inside;
mod loads;
mod lookups;
mod registers;
pub(super) mod rule;
pub(super) mod set;
pub(super) mod stateful;
mod statements;

#[cfg(test)]
mod tests {
    use crate::{Options, Script, rule};
    use chainwright::netlink::Message;
    use chainwright::nft::{Family, RuleRef, Scope, Transaction};
    use chainwright_testing::FakeKernel;

    /// Most kernels are built without them, so that no listing has them to be compared with: messages are read as they
    /// were written.
    #[test]
    fn options_of_dccp_are_read_as_they_are_made() {
        let mut nft = FakeKernel::new().connect().unwrap();
        let mut tx = Transaction::new();
        tx.add(&chainwright::nft::Table::new(Family::INET, "t"))
            .unwrap();
        nft.commit(&tx).unwrap();
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let table = snapshot.tables().next().unwrap();
        for words in ["dccp option 42 exists", "dccp option 0 missing accept"] {
            // One with a handle, as those that the kernel sends.
            let text = format!("replace rule inet t c handle 7 {words}");
            let script = Script::parse("t.nft", text).unwrap();
            let change = script.transaction(None).unwrap();
            let sent = change.transaction().datagram(<[u8]>::to_vec);
            let (_, rest) = Message::split(&sent).unwrap(); // the batch's begin
            let (message, _) = Message::split(rest).unwrap();
            let made = RuleRef::parse(&message).unwrap();
            let said = rule(&table, &made, &Options::default());
            assert_eq!(said.as_deref(), Some(words));
        }
    }
}
