//! Helpers shared by the tests of objects. Their bytes were captured on Linux 6.18 (x86-64), in a
//! new network namespace (`unshare -n`): the requests of nft 1.0.6 with
//! `strace -e trace=sendmsg -e write=all nft …`, and the kernel's dumps afterwards, read from a
//! socket.

/// Parses a hex dump: pairs of hexadecimal digits, optional blanks, comments from `;` to the end of
/// a line.
pub(crate) fn hex(dump: &str) -> Vec<u8> {
    let lines = dump.lines().map(|line| line.split(';').next());
    let digits: Vec<u32> = lines
        .flatten()
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap())
        .collect();
    let bytes = digits.chunks(2);
    bytes.map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
