//! What the tests of objects share. Their bytes were captured on Linux 6.18 (x86-64), in a network
//! namespace made for it (`unshare -n`): what nft 1.0.6 sends with `strace -e trace=sendmsg -e
//! write=all nft …`, and what the kernel lists after that, read from a socket.

/// The bytes of a dump: pairs of hexadecimal digits, blanks at will, comments from `;` to the end of
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
