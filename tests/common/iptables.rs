//! Tables of iptables in a sandbox, for either backend and family, accessed with the library and the
//! real tools.

use chainwright::Retry;
use chainwright::iptables::nft::Profile;
use chainwright::iptables::text::SaveOptions;
use chainwright::iptables::{Backend, Family, Iptables};
use chainwright::legacy::{self, LockPolicy};
use chainwright_testing::Sandbox;

use super::connect;
use super::tools::Tools;

/// Each backend with each family.
pub(crate) const ALL: [(Backend, Family); 4] = [
    (Backend::Nft, Family::Ipv4),
    (Backend::Nft, Family::Ipv6),
    (Backend::Legacy, Family::Ipv4),
    (Backend::Legacy, Family::Ipv6),
];

/// Name of a tool: `iptables-nft`, `ip6tables-legacy-save`, …
pub(crate) fn tool(backend: Backend, family: Family, what: &str) -> String {
    let ip = match family {
        Family::Ipv4 => "iptables",
        Family::Ipv6 => "ip6tables",
    };
    let backend = match backend {
        Backend::Nft => "nft",
        Backend::Legacy => "legacy",
    };
    format!("{ip}-{backend}{what}")
}

/// Opens a handle without a lock, for the profile of the installed tools.
#[track_caller]
pub(crate) fn open(sandbox: &Sandbox, backend: Backend) -> Iptables {
    let opened = sandbox.run(|| Iptables::open(backend)).unwrap().unwrap();
    opened
        .with_lock(LockPolicy::None, Retry::ONCE)
        .with_profile(Profile::V1_8_8)
}

/// The output of the library's save, with counters, without comments.
#[track_caller]
pub(crate) fn our_save(sandbox: &Sandbox, backend: Backend, family: Family) -> String {
    let mut text = Vec::new();
    let tables = open(sandbox, backend).read(family, &[]).unwrap();
    let omissions = tables.save(SaveOptions { counters: true }, &mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(omissions.unwrap().is_none(), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The output of the real tool's save, with counters, without comments.
#[track_caller]
pub(crate) fn real_save(tools: &Tools<'_>, backend: Backend, family: Family) -> String {
    tools.save(&tool(backend, family, "-save -c"))
}

/// The complete kernel state of a backend's tables, including counters and handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Nft { generation: u32, listing: String },
    Legacy(Vec<(legacy::Family, String, Vec<u8>)>),
}

#[track_caller]
pub(crate) fn state(sandbox: &Sandbox, backend: Backend) -> State {
    match backend {
        Backend::Nft => State::Nft {
            generation: connect(sandbox).generation().unwrap().number(),
            listing: Tools::new(sandbox).run("nft -a list ruleset"),
        },
        Backend::Legacy => {
            let mut all = Vec::new();
            for family in [legacy::Family::Ipv4, legacy::Family::Ipv6] {
                let connection = sandbox.run(|| legacy::Connection::open(family)).unwrap();
                let connection = connection.unwrap();
                for name in connection.tables().unwrap() {
                    let table = connection.read(name).unwrap().in_use().unwrap();
                    all.push((family, name.to_string(), table.entries().to_vec()));
                }
            }
            State::Legacy(all)
        }
    }
}
