//! Formats differences between rulesets in nft's language.

use super::list::{self, Options, line};
use chainwright::nft::{
    self, ChainRef, ElementRef, FlowtableRef, RuleRef, SetRef, SnapshotSet, SnapshotTable,
    StatefulObjectRef, TableRef,
};

/// Formats differences in nft's language ([`Snapshot::diff_with`](chainwright::nft::Snapshot::diff_with)): a
/// rule with the contents of its anonymous sets and chains, any other object as the contents of its block, in one
/// line.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use chainwright::nft::{Connection, DiffOptions, Scope};
/// use chainwright_lang::{Options, Script, ObjectFormatter};
///
/// let mut nft = Connection::open()?;
/// let mut apply = |text| -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
///     nft.commit(Script::parse("rules.nft", text)?.transaction(None)?.transaction())?;
///     Ok(nft.snapshot(Scope::all())?)
/// };
/// let old = apply("table inet t { chain c { }; }")?;
/// let new = apply("add rule inet t c tcp dport { 22, 80 } accept")?;
///
/// let options = Options::here();
/// let diff = old.diff_with(&new, DiffOptions::default(), &ObjectFormatter::new(&options))?;
/// assert_eq!(diff.to_string(), "+ rule inet t c: tcp dport { 22, 80 } accept\n");
/// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ObjectFormatter<'o> {
    options: &'o Options,
}

impl<'o> ObjectFormatter<'o> {
    /// Creates a formatter with these options.
    #[must_use]
    pub const fn new(options: &'o Options) -> Self {
        Self { options }
    }
}

impl nft::ObjectFormatter for ObjectFormatter<'_> {
    fn rule_with_contents(&self, table: &SnapshotTable<'_>, rule: &RuleRef<'_>) -> Option<String> {
        list::rule(table, rule, self.options)
    }

    fn table(&self, table: &TableRef<'_>) -> Option<String> {
        line::table(table, self.options)
    }

    fn chain(&self, chain: &ChainRef<'_>) -> Option<String> {
        line::chain(chain, self.options)
    }

    fn set(&self, set: &SnapshotSet<'_>) -> Option<String> {
        line::set(set, self.options)
    }

    fn object(&self, object: &StatefulObjectRef<'_>) -> Option<String> {
        line::object(object, self.options)
    }

    fn flowtable(&self, flowtable: &FlowtableRef<'_>) -> Option<String> {
        line::flowtable(flowtable, self.options)
    }

    fn element(&self, set: &SetRef<'_>, element: &ElementRef<'_>) -> Option<String> {
        Some(list::elements::element(set, element, self.options))
    }
}
