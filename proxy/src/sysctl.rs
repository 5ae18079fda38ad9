//! The kernel's conntrack settings, as kube-proxy writes them at its start.
//!
//! | setting | option | |
//! |---|---|---|
//! | `nf_conntrack_max` | `--conntrack-max-per-core`, `--conntrack-min` | raised, never lowered; kube-proxy also lowers it |
//! | `hashsize` of the module `nf_conntrack` | | raised to a quarter of that |
//! | `nf_conntrack_tcp_timeout_…`, `nf_conntrack_udp_timeout…` | `--conntrack-tcp-timeout-…`, `--conntrack-udp-timeout…` | unchanged if 0 |
//! | `nf_conntrack_tcp_be_liberal` | `--conntrack-tcp-be-liberal` | set, never reset |
//!
//! The first two apply to the machine: they cannot be written in a network namespace other than the initial one, nor in
//! a container whose `/proc/sys` is read-only. A setting that cannot be written is logged, and the agent continues;
//! kube-proxy exits.
//!
//! Source: `pkg/proxy/conntrack/sysctls.go` of Kubernetes.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};

/// Largest number of entries that is requested, however many CPUs there are.
const MAX_ENTRIES: u64 = 1 << 20;

/// The requested settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conntrack {
    /// Maximum number of entries per CPU; 0 leaves the limit unchanged.
    pub(crate) max_per_core: u32,
    /// Minimum for the total number.
    pub(crate) min: u32,
    /// Idle timeouts in whole seconds; 0 leaves them unchanged.
    pub(crate) tcp_established: Duration,
    pub(crate) tcp_close_wait: Duration,
    pub(crate) udp: Duration,
    pub(crate) udp_stream: Duration,
    /// Whether the kernel accepts TCP packets outside their connection's window.
    pub(crate) tcp_be_liberal: bool,
}

/// kube-proxy's defaults.
impl Default for Conntrack {
    fn default() -> Self {
        Self {
            max_per_core: 32 * 1024,
            min: 128 * 1024,
            tcp_established: Duration::from_secs(24 * 3600),
            tcp_close_wait: Duration::from_secs(3600),
            udp: Duration::ZERO,
            udp_stream: Duration::ZERO,
            tcp_be_liberal: false,
        }
    }
}

impl Conntrack {
    /// Returns the smallest acceptable value of `nf_conntrack_max`.
    fn max(&self, processors: usize) -> Option<u64> {
        let processors = u64::try_from(processors).unwrap_or(u64::MAX);
        let scaled = u64::from(self.max_per_core).saturating_mul(processors);
        match scaled {
            0 => None,
            scaled if scaled > MAX_ENTRIES => Some(MAX_ENTRIES),
            scaled => Some(scaled.max(self.min.into())),
        }
    }
}

/// The location of the settings.
#[derive(Debug, Clone)]
pub(crate) struct SysctlPaths {
    /// A folder of settings files, for the calling thread's network namespace.
    settings: PathBuf,
    hash_size: PathBuf,
    processors: usize,
}

impl Default for SysctlPaths {
    fn default() -> Self {
        let processors = std::thread::available_parallelism();
        Self {
            settings: "/proc/sys/net/netfilter".into(),
            hash_size: "/sys/module/nf_conntrack/parameters/hashsize".into(),
            processors: processors.map_or(1, std::num::NonZero::get),
        }
    }
}

impl SysctlPaths {
    /// Returns `true` if the kernel accepts TCP packets outside their connection's window.
    pub(crate) fn is_liberal(&self) -> bool {
        read(&self.settings.join(LIBERAL)).is_ok_and(|value| value != 0)
    }
}

const LIBERAL: &str = "nf_conntrack_tcp_be_liberal";

/// A setting that could not be written.
#[derive(Debug)]
pub(crate) struct Failure {
    setting: PathBuf,
    value: u64,
    error: io::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (setting, value, error) = (self.setting.display(), self.value, &self.error);
        write!(f, "cannot set {setting} to {value}: {error}")?;
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => f.write_str(
                " (this requires root in the initial user and network namespaces, or /proc/sys is read-only)",
            ),
            io::ErrorKind::NotFound => f.write_str(" (connection tracking is not active in the kernel)"),
            _ => Ok(()),
        }
    }
}

/// Writes the requested settings, and logs those that cannot be written.
pub(crate) fn apply(conntrack: &Conntrack, paths: &SysctlPaths) {
    for failure in write(conntrack, paths) {
        warn!("{failure}");
    }
}

fn write(conntrack: &Conntrack, paths: &SysctlPaths) -> Vec<Failure> {
    let mut failures = Vec::new();
    let setting = |name: &str| paths.settings.join(name);
    let mut set = |setting: PathBuf, value: u64, is_enough: fn(u64, u64) -> bool| {
        let written = read(&setting).and_then(|there| match is_enough(there, value) {
            true => Ok(()),
            false => {
                info!(setting = %setting.display(), there, value, "set");
                fs::write(&setting, value.to_string())
            }
        });
        failures.extend(written.err().map(|error| Failure {
            setting,
            value,
            error,
        }));
    };
    let is_at_least: fn(u64, u64) -> bool = |there, value| there >= value;
    let is: fn(u64, u64) -> bool = |there, value| there == value;
    if let Some(max) = conntrack.max(paths.processors) {
        set(setting("nf_conntrack_max"), max, is_at_least);
        set(paths.hash_size.clone(), max / 4, is_at_least);
    }
    for (name, time) in [
        ("tcp_timeout_established", conntrack.tcp_established),
        ("tcp_timeout_close_wait", conntrack.tcp_close_wait),
        ("udp_timeout", conntrack.udp),
        ("udp_timeout_stream", conntrack.udp_stream),
    ] {
        if !time.is_zero() {
            set(setting(&format!("nf_conntrack_{name}")), time.as_secs(), is);
        }
    }
    if conntrack.tcp_be_liberal {
        set(setting(LIBERAL), 1, is);
    }
    failures
}

fn read(setting: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(setting)?;
    let number = text.trim().parse();
    number.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("{text:?}")))
}

#[cfg(test)]
mod tests {
    use chainwright_testing::Sandbox;

    use super::*;

    #[test]
    fn conntrack_max_matches_kube_proxy() {
        let of = |max_per_core, min, processors| {
            let conntrack = Conntrack {
                max_per_core,
                min,
                ..Conntrack::default()
            };
            conntrack.max(processors)
        };
        assert_eq!(Conntrack::default().max(2), Some(131_072));
        assert_eq!(Conntrack::default().max(8), Some(262_144));
        assert_eq!(Conntrack::default().max(256), Some(1_048_576));
        assert_eq!(of(0, 131_072, 8), None);
        assert_eq!(of(10, 0, 8), Some(80));
    }

    /// Returns a folder in place of the kernel's, with these values.
    fn folder(max: &str, hash_size: &str) -> (tempfile::TempDir, SysctlPaths) {
        let dir = tempfile::tempdir().unwrap();
        for (name, value) in [
            ("nf_conntrack_max", max),
            ("hashsize", hash_size),
            ("nf_conntrack_tcp_timeout_established", "432000\n"),
            ("nf_conntrack_tcp_timeout_close_wait", "60\n"),
            ("nf_conntrack_udp_timeout", "30\n"),
            (LIBERAL, "0\n"),
        ] {
            fs::write(dir.path().join(name), value).unwrap();
        }
        let paths = SysctlPaths {
            settings: dir.path().to_owned(),
            hash_size: dir.path().join("hashsize"),
            processors: 4,
        };
        (dir, paths)
    }

    fn value(paths: &SysctlPaths, name: &str) -> u64 {
        read(&paths.settings.join(name)).unwrap()
    }

    #[test]
    fn requested_sysctls_are_written() {
        let (_dir, paths) = folder("65536\n", "16384\n");
        let failures = write(&Conntrack::default(), &paths);
        assert!(failures.is_empty(), "{failures:?}");
        assert_eq!(value(&paths, "nf_conntrack_max"), 131_072);
        assert_eq!(value(&paths, "hashsize"), 32_768);
        let established = "nf_conntrack_tcp_timeout_established";
        assert_eq!(value(&paths, established), 86_400);
        assert_eq!(value(&paths, "nf_conntrack_tcp_timeout_close_wait"), 3600);
        assert_eq!(value(&paths, "nf_conntrack_udp_timeout"), 30);
        assert!(!paths.is_liberal());

        // Larger values stay; 0 leaves a setting unchanged; a failed write is reported, and the others continue.
        let (_dir, paths) = folder("1000000\n", "x\n");
        let conntrack = Conntrack {
            tcp_established: Duration::ZERO,
            udp: Duration::from_millis(45_900),
            udp_stream: Duration::from_secs(90),
            tcp_be_liberal: true,
            ..Conntrack::default()
        };
        let failures = write(&conntrack, &paths);
        let messages: Vec<_> = failures.iter().map(ToString::to_string).collect();
        let [hash_size, stream] = &messages[..] else {
            panic!("{messages:?}");
        };
        assert!(hash_size.contains("hashsize to "), "{hash_size}");
        assert!(stream.contains("udp_timeout_stream") && stream.contains("not active"));
        assert_eq!(value(&paths, "nf_conntrack_max"), 1_000_000);
        assert_eq!(value(&paths, established), 432_000);
        assert_eq!(value(&paths, "nf_conntrack_udp_timeout"), 45);
        assert!(paths.is_liberal());
    }

    #[test]
    fn only_namespaced_sysctls_are_written() {
        let sandbox = Sandbox::new().unwrap();
        sandbox
            .run(|| {
                let paths = SysctlPaths {
                    processors: 32,
                    ..SysctlPaths::default()
                };
                let before = value(&paths, "nf_conntrack_max");
                let conntrack = Conntrack {
                    max_per_core: u32::MAX,
                    udp: Duration::from_secs(77),
                    udp_stream: Duration::from_secs(177),
                    tcp_be_liberal: true,
                    ..Conntrack::default()
                };
                let failures = write(&conntrack, &paths);
                let messages: Vec<_> = failures.iter().map(ToString::to_string).collect();
                // A machine that already has as many entries is not changed.
                let of_max = messages
                    .iter()
                    .find(|messages| messages.contains("nf_conntrack_max"));
                assert_eq!(of_max.is_some(), before < MAX_ENTRIES, "{messages:?}");
                let mentions_namespaces =
                    |message: &String| message.contains("initial user and network namespaces");
                assert!(of_max.is_none_or(mentions_namespaces), "{messages:?}");
                assert_eq!(value(&paths, "nf_conntrack_max"), before);
                for (name, expected) in [
                    ("nf_conntrack_udp_timeout", 77),
                    ("nf_conntrack_udp_timeout_stream", 177),
                    ("nf_conntrack_tcp_timeout_established", 86_400),
                    ("nf_conntrack_tcp_timeout_close_wait", 3600),
                    (LIBERAL, 1),
                ] {
                    assert_eq!(value(&paths, name), expected, "{name}");
                }
                assert!(paths.is_liberal());
            })
            .unwrap();
    }
}
