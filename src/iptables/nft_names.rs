//! Names of iptables' objects in nft's language, for the programs.

use bstr::{BStr, ByteSlice};

use super::{Builtin, Family};
use crate::nft::{Family as NftFamily, hook_name};

/// Returns a name if nft's language can express it.
#[must_use]
pub fn nft_name(name: &BStr) -> Option<String> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./".contains(byte);
    let starts = name
        .first()
        .is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_');
    (starts && name.iter().all(is_plain)).then(|| name.to_str_lossy().into_owned())
}

/// Returns a built-in chain's hook declaration, with its policy.
#[must_use]
pub fn hook_declaration(family: Family, builtin: &Builtin, policy: &str) -> String {
    let hook = hook_name(NftFamily::from(family), builtin.hook).unwrap_or_default();
    format!(
        "type {} hook {hook} priority {}; policy {policy};",
        builtin.chain_type, builtin.priority
    )
}
