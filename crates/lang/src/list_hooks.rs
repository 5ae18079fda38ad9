//! Lists the functions registered at netfilter hooks, like `nft list hooks`.

use std::fmt;

use bstr::ByteSlice;

use super::constant::{Named, Plain};
use chainwright::netlink::Error;
use chainwright::nft::{Connection, Family, Hook, HookFunction, HookOwner, hook_name};

/// Functions that netfilter calls at its hooks, in the form of `nft list hooks`.
///
/// The format is nft 1.0.6's. Unlike that version, and like newer ones, it includes the ARP hooks when all families
/// are requested, and egress besides ingress. Functions with the same priority are in call order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookListing {
    hooks: Vec<Listed>,
}

/// One hook and its functions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    family: Family,
    name: &'static str,
    functions: Vec<HookFunction>,
}

impl HookListing {
    /// Reads the hooks of a family: [`Family::INET`] stands for IPv4 and IPv6, [`Family::UNSPEC`] for all but netdev.
    /// With a device, the ingress functions of that device are included. Netdev hooks always need a device.
    ///
    /// # Errors
    /// [`Error::Lacks`] if the kernel cannot report hooks; otherwise the errors of a request.
    pub fn read(nft: &mut Connection, family: Family, device: Option<&str>) -> Result<Self, Error> {
        Self::of(family, device, |family, hook, device| {
            nft.hook_functions(family, hook, device)
        })
    }

    fn of(
        family: Family,
        device: Option<&str>,
        mut query: impl FnMut(Family, u32, Option<&str>) -> Result<Vec<HookFunction>, Error>,
    ) -> Result<Self, Error> {
        let families: &[Family] = match family {
            Family::UNSPEC => &[Family::ARP, Family::IP, Family::IP6, Family::BRIDGE],
            Family::INET => &[Family::IP, Family::IP6],
            ref family => std::slice::from_ref(family),
        };
        let mut hooks = Vec::new();
        for family in families.iter().copied() {
            let mut add = |name, functions: Vec<HookFunction>| {
                if !functions.is_empty() {
                    hooks.push(Listed {
                        family,
                        name,
                        functions,
                    });
                }
            };
            if let Some(device) = device {
                let mut functions = query(Family::NETDEV, Hook::INGRESS, Some(device))?;
                // Functions registered for IPv4 and IPv6 only are not called for ARP packets.
                functions.retain(|function| family != Family::ARP || is_of_netdev(function));
                add("ingress", functions);
            }
            if family == Family::NETDEV {
                if let Some(device) = device {
                    add("egress", query(family, Hook::EGRESS, Some(device))?);
                }
                continue;
            }
            for hook in Hook::PREROUTING..=Hook::POSTROUTING {
                if let Some(name) = hook_name(family, hook) {
                    add(name, query(family, hook, None)?);
                }
            }
        }
        Ok(Self { hooks })
    }
}

fn is_of_netdev(function: &HookFunction) -> bool {
    match &function.owner {
        Some(HookOwner::Chain { family, .. } | HookOwner::Flowtable { family, .. }) => {
            *family == Family::NETDEV
        }
        _ => false,
    }
}

impl fmt::Display for HookListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for hooks in self.hooks.chunk_by(|one, other| one.family == other.family) {
            let family = hooks.first().map(|hook| hook.family).unwrap_or_default();
            writeln!(f, "family {family} {{")?;
            for hook in hooks {
                writeln!(f, "\thook {} {{", hook.name)?;
                for function in &hook.functions {
                    write_function(f, function)?;
                }
                writeln!(f, "\t}}")?;
            }
            writeln!(f, "}}")?;
        }
        Ok(())
    }
}

fn write_function(f: &mut fmt::Formatter<'_>, called: &HookFunction) -> fmt::Result {
    let sign = match called.priority {
        ..0 => '-',
        0 => ' ',
        1.. => '+',
    };
    write!(f, "\t\t{sign}{:010}", called.priority.unsigned_abs())?;
    let function = called.function.as_ref();
    match (&called.owner, function) {
        (
            Some(HookOwner::Chain {
                family,
                table,
                name,
            }),
            _,
        ) => {
            let (table, name) = (Named(table.as_bstr()), Named(name.as_bstr()));
            write!(f, " chain {family} {table} {name}")?;
        }
        (
            Some(HookOwner::Flowtable {
                family,
                table,
                name,
            }),
            _,
        ) => {
            let (table, name) = (Named(table.as_bstr()), Named(name.as_bstr()));
            write!(f, " flowtable {family} {table} {name}")?;
        }
        (Some(HookOwner::Program(number)), Some(function)) => {
            write!(f, " {} id {number}", Plain(function.as_bstr()))?;
        }
        (Some(HookOwner::Program(number)), None) => write!(f, " id {number}")?,
        (_, Some(function)) => write!(f, " {}", Plain(function.as_bstr()))?,
        (_, None) => {}
    }
    if let Some(module) = &called.module {
        write!(f, " [{}]", Plain(module.as_bstr()))?;
    }
    writeln!(f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainwright::nft::hooks_recorded_kernel;

    /// Same as nft 1.0.6's output except for the order within one priority.
    #[test]
    fn hook_json_equals_nft() {
        let listed = |family, device| {
            let listing = HookListing::read(&mut hooks_recorded_kernel(false), family, device);
            listing.unwrap().to_string()
        };
        let ingress = "\
\thook ingress {
\t\t-2147483648 chain netdev d b [nf_tables]
\t\t 0000000000 chain netdev d a [nf_tables]
\t\t+0000000005 nf_flow_offload_inet_hook [nf_flow_table_inet]
\t\t+0000000007 chain inet u g [nf_tables]
\t}
";
        let input = "\
\thook input {
\t\t-0000000005 chain inet u i [nf_tables]
\t\t 0000000000 ipt_do_table [ip_tables]
\t\t 0000000000 chain ip t i2 [nf_tables]
\t\t 0000000000 chain ip t i [nf_tables]
\t\t+0000000100 nf_nat_ipv4_local_in [nf_nat]
\t\t+2147483647 nf_confirm [nf_conntrack]
\t}
";
        let ip = format!("family ip {{\n{input}}}\n");
        assert_eq!(listed(Family::IP, None), ip);
        assert_eq!(listed(Family::INET, None), ip);
        assert_eq!(listed(Family::UNSPEC, None), ip);
        assert_eq!(listed(Family::IP6, None), "");
        assert_eq!(listed(Family::NETDEV, None), "");
        assert_eq!(
            listed(Family::NETDEV, Some("lo")),
            format!("family netdev {{\n{ingress}}}\n")
        );
        assert_eq!(
            listed(Family::INET, Some("lo")),
            format!("family ip {{\n{ingress}{input}}}\nfamily ip6 {{\n{ingress}}}\n")
        );
        assert_eq!(
            listed(Family::ARP, Some("lo")),
            "family arp {\n\thook ingress {\n\t\t-2147483648 chain netdev d b [nf_tables]\n\
             \t\t 0000000000 chain netdev d a [nf_tables]\n\t}\n}\n"
        );
        assert_eq!(listed(Family::IP, Some("eth7")), ip);
        let lacks = HookListing::read(&mut hooks_recorded_kernel(true), Family::UNSPEC, None);
        assert!(matches!(lacks, Err(Error::Lacks { .. })));
    }

    /// Owner types that the captured replies do not contain.
    #[test]
    fn unknown_hook_owners_are_described() {
        let called = |owner, function: Option<&str>| {
            let mut nft = hooks_recorded_kernel(false);
            let functions = nft.hook_functions(Family::IP, Hook::INPUT, None);
            let mut called = functions.unwrap().remove(0);
            (called.hook, called.priority, called.module) = (0, 1, None);
            (called.function, called.owner) = (function.map(Into::into), owner);
            let listing = HookListing::of(Family::IP, None, |_, hook, _| {
                Ok(if hook == 0 {
                    vec![called.clone()]
                } else {
                    Vec::new()
                })
            });
            let text = listing.unwrap().to_string();
            text.lines().nth(2).unwrap().to_owned()
        };
        let flowtable = Some(HookOwner::Flowtable {
            family: Family::INET,
            table: "t".into(),
            name: "f\n".into(),
        });
        assert_eq!(
            called(flowtable, Some("x")),
            "\t\t+0000000001 flowtable inet t \"f\\x0a\""
        );
        let program = Some(HookOwner::Program(7));
        assert_eq!(
            called(program.clone(), Some("nf_hook_run_bpf")),
            "\t\t+0000000001 nf_hook_run_bpf id 7"
        );
        assert_eq!(called(program, None), "\t\t+0000000001 id 7");
        assert_eq!(called(None, None), "\t\t+0000000001");
    }
}
