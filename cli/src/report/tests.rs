//! The policy of the page.

use sha2::{Digest as _, Sha256};

use super::page::{POLICY, SCRIPT};

/// Encodes bytes in base 64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = (0..3).fold(0, |number, at| {
            number << 8 | u32::from(chunk.get(at).copied().unwrap_or_default())
        });
        for place in 0..4 {
            let digit = number >> (18 - 6 * place) & 63;
            text.push(if place > chunk.len() {
                '='
            } else {
                char::from(DIGITS[digit as usize])
            });
        }
    }
    text
}

/// Browsers run the script only if the policy has its hash.
#[test]
fn the_policy_has_the_hash_of_the_script() {
    let hash = base64(&Sha256::digest(SCRIPT));
    assert!(
        POLICY.ends_with(&format!("script-src 'sha256-{hash}'")),
        "sha256-{hash}"
    );
}
