//! Groups names that only differ in a generated part: a number or a hash.

use bstr::{BStr, ByteSlice};

/// Lengths of kube-proxy's hashes in names.
const HASHES: [usize; 2] = [8, 16];

/// Returns the name up to its generated part: `KUBE-SVC-` of `KUBE-SVC-XPGD46QRK7WJZT7O`, `c` of `c17`. `None` if
/// there is no generated part.
pub(super) fn of(name: &BStr) -> Option<&BStr> {
    let is_between = |byte: &u8| matches!(byte, b'-' | b'_' | b'.' | b':' | b'/' | b'+' | b'~');
    let mut start = 0;
    for (place, part) in name.as_bytes().split(is_between).enumerate() {
        let digit = part.iter().position(u8::is_ascii_digit);
        let in_base32 = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7');
        let is_hash = place > 0 && HASHES.contains(&part.len()) && part.iter().all(in_base32);
        if let Some(digit) = digit {
            // In a part that consists of letters and a number, the letters belong to the prefix.
            let letters = part[..digit].iter().all(u8::is_ascii_lowercase);
            let number = part[digit..].iter().all(u8::is_ascii_digit);
            let kept = if letters && number { digit } else { 0 };
            let end = if place == 0 { digit } else { start + kept };
            return (end > 0).then(|| name[..end].as_bstr());
        }
        if is_hash {
            return Some(name[..start].as_bstr());
        }
        start += part.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_kind() {
        for (name, kind) in [
            ("KUBE-SVC-XPGD46QRK7WJZT7O", Some("KUBE-SVC-")),
            ("KUBE-SEP-NPXABCDEFGHIJKLM", Some("KUBE-SEP-")),
            ("service-ULMVA6XW-ns1/svc1/tcp/p80", Some("service-")),
            ("service-ULMVABXW-ns/svc/tcp/p", Some("service-")),
            (
                "endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80",
                Some("endpoint-"),
            ),
            ("c17", Some("c")),
            ("web-17", Some("web-")),
            ("cali-fw-cali12ab34", Some("cali-fw-")),
            ("pool-node12", Some("pool-node")),
            ("DOCKER-ISOLATION-STAGE-1", Some("DOCKER-ISOLATION-STAGE-")),
            ("17", None),
            ("PREROUTING", None),
            ("cluster-ips-check", None),
            ("", None),
        ] {
            assert_eq!(of(name.into()), kind.map(BStr::new), "{name}");
        }
    }
}
