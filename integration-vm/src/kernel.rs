//! The kernels to test on, and how to obtain them: Debian's packages, unpacked and never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use crate::archive::Archive;
use crate::{Result, output};

/// A kernel that the tests are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// The kernel of the host.
    Host,
    /// The kernel of Debian 11 (bullseye).
    V5_10,
    /// The kernel of Debian 12 (bookworm).
    V6_1,
    /// The kernel of Debian 13 (trixie).
    V6_12,
    /// The newest kernel, of sid.
    Sid,
}

impl Kernel {
    pub(crate) const ALL: [Self; 5] = [Self::V5_10, Self::V6_1, Self::V6_12, Self::Host, Self::Sid];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::V5_10 => "5.10",
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::Sid => "sid",
        }
    }

    /// The suite of Debian's archive that contains it.
    pub(crate) fn suite(self) -> Option<&'static str> {
        match self {
            Self::Host => None,
            Self::V5_10 => Some("bullseye"),
            Self::V6_1 => Some("bookworm"),
            Self::V6_12 => Some("trixie"),
            Self::Sid => Some("sid"),
        }
    }
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|kernel| kernel.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("expected one of {names}")
        })
    }
}

/// An unpacked kernel that can be booted.
#[derive(Debug)]
pub(crate) struct Installed {
    /// The output of `uname -r`: the name of its module directory.
    pub(crate) release: String,
    /// The version of the package.
    pub(crate) version: String,
    /// The kernel itself.
    pub(crate) image: PathBuf,
    /// Its modules, uncompressed, with the files that `modprobe` needs to find them.
    pub(crate) modules: PathBuf,
}

/// Directories below `kernel/` whose modules are kept: nf_tables, x_tables, ipset, IPVS and their
/// dependencies; the devices that tests create; the guest's file systems.
const KEPT: [&str; 33] = [
    "arch/x86/crypto",
    "arch/x86/lib",
    "crypto",
    "drivers/char/hw_random",
    "drivers/net",
    "drivers/net/bonding",
    "drivers/net/ipvlan",
    "drivers/net/vxlan",
    "drivers/virtio",
    "fs",
    "fs/9p",
    "fs/fscache",
    "fs/netfs",
    "fs/overlayfs",
    "lib",
    "lib/crc",
    "lib/crypto",
    "lib/math",
    "net/802",
    "net/8021q",
    "net/9p",
    "net/bridge",
    "net/core",
    "net/dns_resolver",
    "net/ipv4",
    "net/ipv6",
    "net/llc",
    "net/netfilter",
    "net/netlink",
    "net/packet",
    "net/psample",
    "net/sched",
    "net/xfrm",
];
/// Of these also the subdirectories.
const KEPT_WHOLE: [&str; 6] = [
    "net/netfilter",
    "net/bridge",
    "net/ipv4",
    "net/ipv6",
    "lib/crc",
    "lib/crypto",
];

/// Returns a kernel of a suite of Debian's archive; downloads it if it is not in the cache.
pub(crate) fn fetch(cache: &Path, kernel: Kernel, suite: &str, update: bool) -> Result<Installed> {
    let directory = cache.join("kernels").join(kernel.name());
    let marker = directory.join("version"); // written last
    if update || !marker.is_file() {
        let archive = Archive::open(&cache.join("apt").join(suite), suite)?;
        let version = archive.version("linux-image-amd64")?;
        if fs::read_to_string(&marker).ok().as_deref() != Some(version.as_str()) {
            let _ = fs::remove_dir_all(&directory);
            unpack(&archive, &directory)?;
            fs::write(&marker, version)
                .map_err(|error| format!("{}: {error}", marker.display()))?;
        }
    }
    let release = only_entry(&directory.join("modules/lib/modules"))?;
    Ok(Installed {
        version: fs::read_to_string(&marker).map_err(|error| error.to_string())?,
        image: directory.join("vmlinuz"),
        modules: directory.join("modules/lib/modules").join(&release),
        release,
    })
}

fn unpack(archive: &Archive, directory: &Path) -> Result<()> {
    let io = |error: std::io::Error| format!("{}: {error}", directory.display());
    let image = archive
        .needs("linux-image-amd64")?
        .into_iter()
        .find(|package| package.starts_with("linux-image-"))
        .ok_or("the package linux-image-amd64 depends on no kernel package")?;
    // Newer packages are split.
    let mut packages: Vec<String> = archive
        .needs(&image)?
        .into_iter()
        .filter(|package| {
            ["linux-binary-", "linux-modules-"]
                .iter()
                .any(|start| package.starts_with(start))
        })
        .collect();
    packages.push(image);

    let whole = directory.join("whole");
    fs::create_dir_all(&whole).map_err(io)?;
    archive.unpack(&packages, &whole)?;
    let modules = ["lib/modules", "usr/lib/modules"]
        .iter()
        .map(|path| whole.join(path))
        .find(|path| path.is_dir())
        .ok_or_else(|| format!("no modules found in the packages {packages:?}"))?;
    let release = only_entry(&modules)?;
    let image = ["boot", "usr/lib/modules"]
        .iter()
        .flat_map(|place| {
            [
                whole.join(place).join(format!("vmlinuz-{release}")),
                whole.join(place).join(&release).join("vmlinuz"),
            ]
        })
        .find(|path| path.is_file())
        .ok_or_else(|| format!("no kernel found in the packages {packages:?}"))?;
    fs::copy(image, directory.join("vmlinuz")).map_err(io)?;

    let base = directory.join("modules");
    let to = base.join("lib/modules").join(&release);
    let from = modules.join(&release);
    for kept in KEPT {
        keep(
            &from.join("kernel").join(kept),
            &to.join("kernel").join(kept),
            KEPT_WHOLE.contains(&kept),
        )?;
    }
    for list in [
        "modules.builtin",
        "modules.builtin.modinfo",
        "modules.order",
    ] {
        if from.join(list).is_file() {
            fs::copy(from.join(list), to.join(list)).map_err(io)?;
        }
    }
    output(
        Command::new("busybox")
            .args(["depmod", "-b"])
            .arg(&base)
            .arg(&release),
    )?;
    fs::remove_dir_all(&whole).map_err(io)
}

/// Copies the modules of a directory, uncompressed.
fn keep(from: &Path, to: &Path, whole: bool) -> Result<()> {
    let Ok(entries) = fs::read_dir(from) else {
        return Ok(()); // this kernel has nothing there, or it is built in
    };
    let io = |error: std::io::Error| format!("{}: {error}", to.display());
    fs::create_dir_all(to).map_err(io)?;
    for entry in entries {
        let entry = entry.map_err(io)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(io)?.is_dir() {
            if whole {
                keep(&entry.path(), &to.join(&name), true)?;
            }
        } else if let Some(plain) = name.strip_suffix(".xz") {
            let bytes = Command::new("busybox")
                .args(["unxz", "-c"])
                .arg(entry.path())
                .output()
                .map_err(io)?;
            if !bytes.status.success() {
                return Err(format!("cannot decompress {}", entry.path().display()));
            }
            fs::write(to.join(plain), bytes.stdout).map_err(io)?;
        } else if name.ends_with(".ko") {
            fs::copy(entry.path(), to.join(&name)).map_err(io)?;
        }
    }
    Ok(())
}

/// The name of a directory's only entry.
fn only_entry(directory: &Path) -> Result<String> {
    let entries: Vec<_> = fs::read_dir(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    match entries.as_slice() {
        [one] => Ok(one.clone()),
        other => Err(format!(
            "{}: expected one entry, found {other:?}",
            directory.display()
        )),
    }
}

impl Installed {
    /// The modules that must be loaded for these, in order; built-in ones are omitted.
    pub(crate) fn closure(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let list = self.modules.join("modules.dep");
        let text =
            fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
        let mut order = Vec::new();
        for name in names {
            add(&text, name, &mut order);
        }
        Ok(order.iter().map(|path| self.modules.join(path)).collect())
    }
}

/// Adds a module to a list, after its dependencies.
fn add<'t>(dependencies: &'t str, name: &str, order: &mut Vec<&'t str>) {
    let found = dependencies.lines().find_map(|line| {
        let (path, needed) = line.split_once(':')?;
        (module_name(path) == name).then_some((path, needed))
    });
    if let Some((path, needed)) = found
        && !order.contains(&path)
    {
        for one in needed.split_whitespace() {
            add(dependencies, &module_name(one), order);
        }
        order.push(path);
    }
}

/// Returns a module's name from its file name.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::add;

    #[test]
    fn modules_follow_their_dependencies() {
        let list = "kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko\n\
                    kernel/net/9p/9pnet.ko:\n\
                    kernel/fs/netfs/netfs.ko: kernel/fs/fscache/fscache.ko\n\
                    kernel/fs/fscache/fscache.ko:\n\
                    kernel/drivers/virtio/virtio-pci.ko: kernel/drivers/virtio/virtio.ko\n\
                    kernel/drivers/virtio/virtio.ko:\n";
        let mut order = Vec::new();
        for name in ["virtio_pci", "9p", "overlay", "9pnet"] {
            add(list, name, &mut order);
        }
        let names: Vec<_> = order
            .iter()
            .map(|path| path.rsplit('/').next().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "virtio.ko",
                "virtio-pci.ko",
                "9pnet.ko",
                "fscache.ko",
                "netfs.ko",
                "9p.ko"
            ]
        );
    }
}
