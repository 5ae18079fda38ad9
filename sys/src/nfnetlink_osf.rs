//! `linux/netfilter/nfnetlink_osf.h`: operating system fingerprints based on TCP SYN packets
//! (`NFNL_SUBSYS_OSF`), and the data of the match `osf`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nfnetlink_osf.h";

    constants {
        /// Maximum size of a genre, a version or a subtype, in bytes, including the closing NUL.
        "#define MAXGENRELEN": usize {
            MAXGENRELEN = 32;
        }

        /// Flags of the match ([`nf_osf_info::flags`]).
        "#define NF_OSF_*": u32 {
            /// The genre is compared.
            NF_OSF_GENRE = 1 << 0;
            /// [`nf_osf_info::ttl`] counts.
            NF_OSF_TTL = 1 << 1;
            /// [`nf_osf_info::loglevel`] counts.
            NF_OSF_LOG = 1 << 2;
            /// Negates.
            NF_OSF_INVERT = 1 << 3;
            /// All flags.
            NF_OSF_FLAGMASK = 0xf;
        }

        /// Packets and fingerprints to log.
        "#define NF_OSF_LOGLEVEL_*": u32 {
            /// Every fingerprint that fits, and packets that none fits.
            NF_OSF_LOGLEVEL_ALL = 0;
            /// Only the first fingerprint that fits.
            NF_OSF_LOGLEVEL_FIRST = 1;
            /// Every fingerprint that fits, but no unknown packets.
            NF_OSF_LOGLEVEL_ALL_KNOWN = 2;
        }

        /// Comparison of the packet's time to live with the fingerprint's.
        "#define NF_OSF_TTL_*": u32 {
            /// Both must be equal.
            NF_OSF_TTL_TRUE = 0;
            /// The packet's may be less.
            NF_OSF_TTL_LESS = 1;
            /// It is not compared.
            NF_OSF_TTL_NOCHECK = 2;
        }

        /// Kinds of TCP options ([`nf_osf_opt::kind`]).
        "enum iana_options": u16 {
            /// End of the options.
            OSFOPT_EOL = 0;
            /// No operation.
            OSFOPT_NOP = 1;
            /// Maximum segment size.
            OSFOPT_MSS = 2;
            /// Window scale.
            OSFOPT_WSO = 3;
            /// Selective acknowledgement permitted.
            OSFOPT_SACKP = 4;
            /// Selective acknowledgement.
            OSFOPT_SACK = 5;
            /// Echo.
            OSFOPT_ECHO = 6;
            /// Echo reply.
            OSFOPT_ECHOREPLY = 7;
            /// Timestamp.
            OSFOPT_TS = 8;
            /// Partial order connection permitted.
            OSFOPT_POCP = 9;
            /// Partial order service profile.
            OSFOPT_POSP = 10;
            /// None.
            OSFOPT_EMPTY = 255;
        }

        /// Interpretation of a window size or another number of a fingerprint ([`nf_osf_wc::wc`]).
        "enum nf_osf_window_size_options": u32 {
            /// As the number itself.
            OSF_WSS_PLAIN = 0;
            /// As a multiple of the maximum segment size.
            OSF_WSS_MSS = 1;
            /// As a multiple of the link's maximum packet size.
            OSF_WSS_MTU = 2;
            /// As any multiple of the number.
            OSF_WSS_MODULO = 3;
        }

        /// Attributes of the messages.
        "enum nf_osf_attr_type": u16 {
            /// Not used.
            OSF_ATTR_UNSPEC = 0;
            /// An [`nf_osf_user_finger`].
            OSF_ATTR_FINGER = 1;
        }

        /// Messages of the subsystem; [`OSF_MSG_REMOVE`] contains the fingerprint to remove.
        "enum nf_osf_msg_types": u8 {
            /// Adds a fingerprint.
            OSF_MSG_ADD = 0;
            /// Removes a fingerprint.
            OSF_MSG_REMOVE = 1;
        }
    }

    structs {
        /// A number of a fingerprint that may be a wildcard.
        struct nf_osf_wc {
            /// `OSF_WSS_*`.
            field wc: u32,
            /// The number, host byte order.
            field val: u32,
        }

        /// A TCP option of a fingerprint.
        struct nf_osf_opt {
            /// `OSFOPT_*`.
            field kind: u16,
            /// Its length, in bytes.
            field length: u16,
            /// Its value.
            field wc: nf_osf_wc,
        }

        /// Data of the match `osf`, revision 0.
        struct nf_osf_info {
            /// Genre of the operating system, NUL-terminated.
            field genre: [u8; MAXGENRELEN],
            /// Length of the genre, in bytes, without the closing NUL.
            field len: u32,
            /// `NF_OSF_*`.
            field flags: u32,
            /// `NF_OSF_LOGLEVEL_*`.
            field loglevel: u32,
            /// `NF_OSF_TTL_*`.
            field ttl: u32,
        }

        /// A fingerprint, as the kernel receives it.
        struct nf_osf_user_finger {
            /// Window size.
            field wss: nf_osf_wc,
            /// Time to live.
            field ttl: u8,
            /// 1 when the packet must not be fragmented.
            field df: u8,
            /// Size of the whole SYN packet, in bytes, host byte order.
            field ss: u16,
            /// Maximum segment size, in bytes, host byte order.
            field mss: u16,
            /// Number of elements of `opt` in use.
            field opt_num: u16,
            /// Genre of the operating system, NUL-terminated.
            field genre: [u8; MAXGENRELEN],
            /// Its version, NUL-terminated.
            field version: [u8; MAXGENRELEN],
            /// Its variant, NUL-terminated.
            field subtype: [u8; MAXGENRELEN],
            /// TCP options in order.
            field opt: [nf_osf_opt; 40],
        }

        /// A fingerprint with the matching packet.
        #[repr(align(4))]
        struct nf_osf_nlmsg {
            /// The fingerprint.
            field f: nf_osf_user_finger,
            /// The IPv4 header without options (in C: `struct iphdr`), network byte order.
            field ip: [u8; 20],
            /// The TCP header without options (in C: `struct tcphdr`), network byte order.
            field tcp: [u8; 20],
        }
    }
}
