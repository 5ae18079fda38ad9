//! `-m socket`: checks whether there is a socket for the packet.
//!
//! Data of revisions 1 to 3 (`struct xt_socket_mtinfo1` to `3`, `linux/netfilter/xt_socket.h`);
//! revision 0 has no data.

use chainwright_sys::xt_socket::{
    XT_SOCKET_FLAGS_V1, XT_SOCKET_FLAGS_V2, XT_SOCKET_FLAGS_V3, XT_SOCKET_NOWILDCARD,
    XT_SOCKET_RESTORESKMARK, XT_SOCKET_TRANSPARENT, xt_socket_mtinfo3,
};

use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

bitflags::bitflags! {
    /// `-m socket`: checks whether there is a socket for the packet.
    ///
    /// All flags are optional.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Socket: u8 {
        /// The socket must be transparent (`IP_TRANSPARENT`).
        const TRANSPARENT = XT_SOCKET_TRANSPARENT;
        /// Also accepts a listening socket that is bound to no address.
        const NOWILDCARD = XT_SOCKET_NOWILDCARD;
        /// The packet gets the socket's mark.
        const RESTORE_SKMARK = XT_SOCKET_RESTORESKMARK;
    }
}

/// In the order of iptables-save.
const FLAGS: [(Socket, &str); 3] = [
    (Socket::TRANSPARENT, "transparent"),
    (Socket::NOWILDCARD, "nowildcard"),
    (Socket::RESTORE_SKMARK, "restore-skmark"),
];

impl Extension for Socket {
    const NAME: &'static str = "socket";
    const REVISION: u8 = 3;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::switch("transparent"),
        OptionSpec::switch("nowildcard"),
        OptionSpec::switch("restore-skmark"),
    ];
    const HAS_EFFECTS: bool = true;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let known = match revision {
            0 => return Some(Self::empty()),
            1 => XT_SOCKET_FLAGS_V1,
            2 => XT_SOCKET_FLAGS_V2,
            3 => XT_SOCKET_FLAGS_V3,
            _ => return None,
        };
        let info: xt_socket_mtinfo3 = read_struct(info)?;
        (info.flags & !known == 0).then(|| Self::from_bits_truncate(info.flags))
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_socket_mtinfo3 { flags: self.bits() };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        Ok(GivenOption::flags(given, &FLAGS))
    }

    fn print(&self, text: &mut Text) {
        text.flags(*self, &FLAGS);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" socket");
        self.print(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-m socket --transparent --restore-skmark` by iptables-legacy 1.8.9 (from `strace -xx`).
        let info = [5, 0, 0, 0, 0, 0, 0, 0];
        let socket = Socket::TRANSPARENT | Socket::RESTORE_SKMARK;
        assert_eq!(Socket::read(Family::Ipv4, 3, &info), Some(socket));
        assert_eq!(
            Match::Socket(socket).encode(Family::Ipv4).unwrap().info[..],
            info
        );
        assert_eq!(
            Match::Socket(socket).to_string(),
            "-m socket --transparent --restore-skmark"
        );
    }

    #[test]
    fn older_revisions_know_fewer_flags() {
        let read = |revision, flags: u8| Socket::read(Family::Ipv4, revision, &[flags]);
        assert_eq!(Socket::read(Family::Ipv4, 0, &[]), Some(Socket::empty()));
        assert_eq!(read(1, 1), Some(Socket::TRANSPARENT));
        assert_eq!(read(1, 2), None);
        assert_eq!(read(2, 2), Some(Socket::NOWILDCARD));
        assert_eq!(read(2, 4), None);
        assert_eq!(read(3, 8), None);
        assert_eq!(read(4, 0), None);
        assert_eq!(Socket::read(Family::Ipv4, 3, &[]), None);
    }
}
