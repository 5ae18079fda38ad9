//! Versions of nft, and the forms in which their output differs.

use std::fmt;

/// Version of nft whose form the output has.
///
/// nft 1.1.7 reads both forms; nft 1.0.6 does not read all of the newer one. `docs/nft.md` lists the forms that differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NftVersion {
    /// nft 1.0.6 (2022).
    V1_0,
    /// nft 1.1.7, the newest.
    #[default]
    V1_1,
}

impl NftVersion {
    /// All versions, the oldest first.
    pub const ALL: [Self; 2] = [Self::V1_0, Self::V1_1];

    /// Returns the version without its last part: `1.0`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
        }
    }

    /// Returns the exact version that the output is compared with: `1.0.6`.
    #[must_use]
    pub const fn full(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0.6",
            Self::V1_1 => "1.1.7",
        }
    }

    /// Returns `true` if this version has a form.
    pub(crate) fn has(self, form: Form) -> bool {
        self >= form.since()
    }
}

/// Writes [`NftVersion::name`].
impl fmt::Display for NftVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Declares the forms that differ between versions: since when, and for the page of the differences where they occur, what
/// they concern, and an example before that version and since then.
macro_rules! forms {
    ($($name:ident: $since:ident, $place:ident, $about:literal, $before:literal => $after:literal;)*) => {
        /// Form that not all versions have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(not(feature = "json"), expect(dead_code, reason = "some forms occur only in JSON"))]
        pub(crate) enum Form {
            $($name,)*
        }

        impl Form {
            /// Returns the first version that has the form.
            const fn since(self) -> NftVersion {
                match self {
                    $(Self::$name => NftVersion::$since,)*
                }
            }
        }

        /// The forms in the order of the page.
        #[cfg(test)]
        const FORMS: &[tests::Description] = &[$(tests::Description {
            since: NftVersion::$since,
            place: tests::FormScope::$place,
            about: $about,
            before: $before,
            after: $after,
        },)*];
    };
}

forms! {
    DefaultBurst: V1_1, Text, "the default burst of a limit in packets",
        "limit rate 5/second" => "limit rate 5/second burst 5 packets";
    FlagMasks: V1_1, Both, "a comparison of several flags",
        "tcp flags syn / syn,ack" => "tcp flags & (syn | ack) == syn";
    SetCount: V1_1, Both, "a set with a size, on kernels that report the number of its elements",
        "size 16" => "size 16\t# count 3";
    ElementLines: V1_1, Text, "elements of maps, of sets with timeouts or statements, and with comments",
        "in words: several in a line" => "in words: one in a line";
    ElementOrder: V1_1, Both, "the order of names and concatenations in a set",
        "in words: by the last character or field" => "in words: by the first character or field";
    NatPriorities: V1_1, Text, "the priorities of NAT at the hooks of local packets",
        "hook output priority -100" => "hook output priority dstnat";
    QuotedDevices: V1_1, Text, "several devices",
        "devices = { eth0, eth1 }" => "devices = { \"eth0\", \"eth1\" }";
    FibCheck: V1_1, Text, "existence of a route",
        "fib saddr oif missing" => "fib saddr check missing";
    IcmpCodes: V1_1, Both, "codes of ICMP in matches and sets",
        "icmp code host-unreachable" => "icmp code 1";
    StatusNames: V1_1, Both, "further names of a connection's status",
        "ct status 0x40" => "ct status seq-adjust";
    DescribedFiles: V1_1, Text, "`describe` of realms and device groups",
        "in words: no names" => "in words: the names of /etc/iproute2";
    DynamicMeters: V1_1, Both, "`list meters`",
        "in words: the sets that `meter` created" => "in words: all sets that rules can update";
    FragOffset: V1_1, Text, "the fragment offset of IPv4",
        "ip frag-off 8191" => "ip frag-off 0x1fff";
    BitOffsets: V1_1, Both, "adjacent bits of a packet's bytes without a name",
        "@nh,8,8 & 0xf == 0x1" => "@nh,12,4 0x1";
    MarkMasks: V1_1, Both, "marks whose first bits are compared, and ranges of them",
        "meta mark 0x00010000/16" => "meta mark & 0xffff0000 == 0x00010000";
    OptionAddresses: V1_1, Both, "addresses in options of IPv4",
        "ip option lsrr addr 3221225985" => "ip option lsrr addr 192.0.2.1";
    MptcpSubtypes: V1_1, Both, "subtypes of MPTCP",
        "tcp option mptcp subtype 0" => "tcp option mptcp subtype mp-capable";
    ImpliedByPort: V1_1, Both, "the match of the protocol that a translated port implies",
        "meta l4proto tcp redirect to :tcp dport map { 53 : 5353 }" => "redirect to :tcp dport map { 53 : 5353 }";
    HourRanges: V1_1, Both, "hours before and after midnight",
        "meta hour != \"01:00\"-\"23:00\"" => "meta hour \"23:00\"-\"01:00\"";
    DayRanges: V1_1, Text, "ranges of days",
        "meta day \"Monday\"-\"Friday\"" => "meta day 1-5";
    LongOperands: V1_1, Both, "a number that is combined with a shorter field",
        "meta mark set ip dscp | 0x10" => "meta mark set ip dscp | cs2";
    TimeoutUnits: V1_1, Text, "the policy of a `ct timeout`",
        "policy = { replied : 300 }" => "policy = { replied : 5m }";
    RangeExpression: V1_1, Kernel, "a range that a rule compares with",
        "[ cmp gte reg 1 0x00005000 ] [ cmp lte reg 1 0x00005a00 ]" => "[ range eq reg 1 0x00005000 0x00005a00 ]";
    RouteExistence: V1_1, Kernel, "the existence of a route",
        "[ fib saddr oif present => reg 1 ] [ cmp eq reg 1 0x00000001 ]" => "[ fib saddr oif present => reg 1 ] [ cmp eq reg 1 0x01 ]";
    MarkOrder: V1_1, Kernel, "a mark that is set to a four-byte number without its own type",
        "[ payload load 4b @ network header + 12 => reg 1 ] [ meta set mark with reg 1 ]"
        => "[ payload load 4b @ network header + 12 => reg 1 ] [ byteorder reg 1 = ntoh(reg 1, 4, 4) ] [ meta set mark with reg 1 ]";
    UdpChecksums: V1_1, Kernel, "a statement that changes a field of UDP: a packet without a checksum gets none",
        "[ payload write … csum_type 1 csum_off 6 csum_flags 0x0 ]" => "[ payload write … csum_type 0 csum_off 0 csum_flags 0x1 ]";
    JsonChainsFirst: V1_1, Json, "the order of a table's objects",
        "in words: objects, sets, flowtables, chains" => "in words: chains, objects, sets, flowtables";
    JsonFlags: V1_1, Json, "a single flag",
        "\"flags\": \"random\"" => "\"flags\": [\"random\"]";
    JsonOperands: V1_1, Json, "several operations of one kind",
        "{\"|\": [{\"|\": [\"fin\", \"syn\"]}, \"rst\"]}" => "{\"|\": [\"fin\", \"syn\", \"rst\"]}";
    JsonTypeof: V1_1, Json, "the keys of a set that is declared by `typeof`",
        "\"type\": \"mark\"" => "\"type\": {\"typeof\": {\"meta\": {\"key\": \"mark\"}}}";
    JsonDataTypes: V1_1, Json, "several types of a map's data",
        "\"map\": \"ipv4_addr . mark\"" => "\"map\": [\"ipv4_addr\", \"mark\"]";
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;

    /// The representations in which a form occurs.
    #[derive(Debug, Clone, Copy)]
    pub(super) enum FormScope {
        Text,
        Json,
        /// In both.
        Both,
        /// In instructions for the kernel.
        Kernel,
    }

    /// A line of the page.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Description {
        pub(super) since: NftVersion,
        pub(super) place: FormScope,
        pub(super) about: &'static str,
        pub(super) before: &'static str,
        pub(super) after: &'static str,
    }

    /// The table between these lines of `docs/nft.md`.
    const BEGIN: &str = "<!-- The table is generated from crates/lang/src/dialect.rs. -->\n";
    const END: &str = "<!-- End of the generated table. -->\n";

    fn table() -> String {
        let mut text = String::from("| about | in | before | since 1.1 |\n|---|---|---|---|\n");
        for form in FORMS {
            assert_eq!(form.since, NftVersion::V1_1, "the table has one column");
            let place = match form.place {
                FormScope::Text => "text",
                FormScope::Json => "JSON",
                FormScope::Both => "both",
                FormScope::Kernel => "instructions",
            };
            let [before, after] = [form.before, form.after].map(example);
            // Into memory.
            let _ = writeln!(text, "| {} | {place} | {before} | {after} |", form.about);
        }
        text
    }

    /// A word of the language as code, a description as it is. A tab is not visible, and a bar would end the cell.
    fn example(example: &str) -> String {
        let plain = example.replace('\t', " ").replace('|', "\\|");
        match example.starts_with("in words: ") {
            true => plain["in words: ".len()..].to_owned(),
            false => format!("`{plain}`"),
        }
    }

    /// With `CHAINWRIGHT_WRITE_DOCS` set, writes the table instead.
    #[test]
    fn the_page_lists_all_forms() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/nft.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (there, after) = rest.split_once(END).unwrap();
        let made = format!("\n{}\n", table());
        if std::env::var_os("CHAINWRIGHT_WRITE_DOCS").is_some() {
            std::fs::write(&path, [before, BEGIN, &made, END, after].concat()).unwrap();
        } else {
            assert_eq!(
                there, made,
                "docs/nft.md is not current: run CHAINWRIGHT_WRITE_DOCS=1 cargo test -p chainwright-lang --lib dialect"
            );
        }
    }

    #[test]
    fn versions_have_the_forms_since_theirs() {
        assert!(!NftVersion::V1_0.has(Form::DefaultBurst));
        assert!(NftVersion::V1_1.has(Form::DefaultBurst));
        let names = NftVersion::ALL.map(|version| (version.to_string(), version.full()));
        for (short, full) in names {
            assert!(full.starts_with(&short), "{short} {full}");
        }
        assert_eq!(NftVersion::ALL.last(), Some(&NftVersion::default()));
    }
}
