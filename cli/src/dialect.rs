//! The version of nft in whose form texts and JSON of nft's language are printed.

use std::sync::OnceLock;

use chainwright_lang::{NftVersion, Options};
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The version that `--nft-version` selects for this process.
static SELECTED: OnceLock<NftVersion> = OnceLock::new();

/// Selects the version, once.
pub(crate) fn select(version: NftVersion) {
    SELECTED.get_or_init(|| version);
}

/// Returns the selected version.
pub(crate) fn selected() -> NftVersion {
    SELECTED.get().copied().unwrap_or_default()
}

/// Returns options of the selected version, with the interface names of this network namespace.
pub(crate) fn options() -> Options {
    of_selected(Options::here())
}

/// Returns other options with the selected version.
pub(crate) fn of_selected(mut options: Options) -> Options {
    options.nft_version = selected();
    options
}

/// Returns a parser of version numbers without their last part.
pub(crate) fn parser() -> impl TypedValueParser<Value = NftVersion> {
    PossibleValuesParser::new(NftVersion::ALL.map(NftVersion::name)).map(|name| {
        let mut all = NftVersion::ALL.into_iter();
        let named = all.find(|version| version.name() == name);
        named.unwrap_or_default() // the parser accepts no other name
    })
}
