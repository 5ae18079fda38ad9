//! A machine that boots a kernel and runs the plan: qemu with read-only access to the host's files.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::kernel::Installed;
use crate::suite::Program;
use crate::{Result, initramfs};

/// Time limit until a machine reaches its files; five times as long if it is emulated.
const START: Duration = Duration::from_secs(40);
/// The status of a program that was killed.
pub(crate) const TOO_LONG: u8 = 128 + 9;

/// The configuration of a machine.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) kernel: &'a Installed,
    /// Directory for the files that the machine boots from.
    pub(crate) work: &'a Path,
    /// Directory for the results.
    pub(crate) results: &'a Path,
    /// Memory in MiB.
    pub(crate) memory: u32,
    /// Number of processors.
    pub(crate) processors: u32,
    /// Whether to emulate the processor although KVM works.
    pub(crate) emulate: bool,
}

/// The users that run the programs.
pub(crate) const USERS: [&str; 2] = ["root", "user"];
/// Runs a command as `user`: the first ID that Debian gives a person.
const ORDINARY: &str = "setpriv --reuid 1000 --regid 1000 --clear-groups";

/// The test that requires a kernel without loaded modules.
const BEFORE_MODULES: &str = "modules";
/// Modules loaded after that test: no rule causes the kernel to load legacy tables. The real tools load them
/// before they look, and on a node with such tables that has happened.
const LEGACY: [&str; 17] = [
    "ip_tables",
    "iptable_filter",
    "iptable_nat",
    "iptable_mangle",
    "iptable_raw",
    "iptable_security",
    "ip6_tables",
    "ip6table_filter",
    "ip6table_nat",
    "ip6table_mangle",
    "ip6table_raw",
    "ip6table_security",
    "arp_tables",
    "arptable_filter",
    "ebtables",
    "ebtable_filter",
    "ebtable_nat",
];

/// How a machine's processor is provided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processor {
    Kvm,
    Emulated,
}

/// How a machine ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It was powered off from inside.
    Off,
    /// It did not reach its files in time.
    NotStarted,
    /// It was killed, or qemu failed.
    Broken,
}

impl Machine<'_> {
    /// Boots, runs every program as root and as a user without privileges, and waits until the machine is off.
    pub(crate) fn run(&self, plan: &[Program], directory: &Path, limit: Duration) -> Result<()> {
        let initramfs = self.work.join(format!("initramfs-{}", self.kernel.release));
        initramfs::write(self.kernel, &initramfs)?;
        let write = |name: &str, text: &str| {
            fs::write(self.results.join(name), text).map_err(|error| format!("{name}: {error}"))
        };
        write("directory", &format!("{}\n", directory.display()))?;
        let mut lines = String::new();
        let mut loaded = false;
        for program in plan {
            if !loaded && program.name != BEFORE_MODULES {
                lines += &format!("load {}\n", LEGACY.join(" "));
                loaded = true;
            }
            for user in USERS {
                let (name, path) = (&program.name, program.path.display());
                let arguments = program.arguments(user).join(" ");
                let rounds = program.rounds.iter();
                let rounds: String = rounds
                    .map(|(name, value)| format!("{name}={value} "))
                    .collect();
                let limit = limit.as_secs();
                lines += &format!("{user} {name} {limit} env {rounds}{path} {arguments}\n");
            }
        }
        write("plan", &lines)?;

        // Opening `/dev/kvm` does not prove that this kernel runs there: some hypervisors support KVM only for
        // kernels of their own kind.
        let kvm = !self.emulate
            && File::options()
                .read(true)
                .write(true)
                .open("/dev/kvm")
                .is_ok();
        let longest = limit * plan.len() as u32 * USERS.len() as u32;
        let mut end = End::NotStarted;
        if kvm {
            end = self.boot(&initramfs, Processor::Kvm, START, longest)?;
        }
        if end == End::NotStarted {
            end = self.boot(&initramfs, Processor::Emulated, START * 5, longest)?;
        }
        if end == End::Off {
            return Ok(());
        }
        Err(format!(
            "the machine with kernel {} failed; see its console output in {}",
            self.kernel.release,
            self.results.join("console").display()
        ))
    }

    /// Boots once.
    fn boot(
        &self,
        initramfs: &Path,
        processor: Processor,
        start: Duration,
        longest: Duration,
    ) -> Result<End> {
        let share = |path: &Path, tag: &str, more: &str| {
            let path = path.display();
            format!("local,path={path},mount_tag={tag},security_model=none,multidevs=remap{more}")
        };
        let memory = format!("{}M", self.memory);
        let console = self.results.join("console");
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args("-nodefaults -no-user-config -display none -no-reboot -machine q35".split(' '))
            .args(["-m", &memory, "-smp", &self.processors.to_string()])
            .args(match processor {
                Processor::Kvm => ["-accel", "kvm", "-cpu", "host"],
                Processor::Emulated => ["-accel", "tcg,thread=multi", "-cpu", "max"],
            })
            .arg("-kernel")
            .arg(&self.kernel.image)
            .arg("-initrd")
            .arg(initramfs)
            .args([
                "-append",
                "console=ttyS0 quiet loglevel=4 panic=-1 random.trust_cpu=on",
            ])
            .args(["-device", "virtio-rng-pci"])
            .args(["-virtfs", &share(Path::new("/"), "host", ",readonly=on")])
            .args([
                "-virtfs",
                &share(&self.kernel.modules, "modules", ",readonly=on"),
            ])
            .args(["-virtfs", &share(self.results, "results", "")])
            .args(["-serial", &format!("file:{}", console.display())])
            .stdin(Stdio::null());
        let how = match processor {
            Processor::Kvm => "with KVM",
            Processor::Emulated => "with an emulated processor",
        };
        eprintln!("booting {} {how}", self.kernel.release);
        let began = Instant::now();
        let mut child = qemu.spawn().map_err(|error| {
            format!("cannot run qemu-system-x86_64 ({error}): apt-get install qemu-system-x86")
        })?;
        let started = self.results.join("started");
        let mut end = wait(&mut child, start, || started.exists())?;
        if end.is_none() && started.exists() {
            end = wait(&mut child, longest, || false)?;
        }
        let seconds = began.elapsed().as_secs();
        eprintln!("{} took {seconds} s", self.kernel.release);
        if end.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(match end {
            Some(true) if started.exists() => End::Off,
            _ if !started.exists() => End::NotStarted,
            _ => End::Broken,
        })
    }
}

/// Waits until a process has ended, and returns whether it succeeded; `None` if `so` returns true or the time is
/// over before.
fn wait(child: &mut Child, limit: Duration, so: impl Fn() -> bool) -> Result<Option<bool>> {
    let start = Instant::now();
    while start.elapsed() < limit && !so() {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status.success()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(None)
}

/// Runs the plan on the host's kernel, with results like those of a machine. Without root, only as the current
/// user.
pub(crate) fn run_here(
    plan: &[Program],
    directory: &Path,
    results: &Path,
    limit: Duration,
) -> Result<()> {
    let id = crate::output(Command::new("id").arg("-u"))?;
    let users: &[&str] = if id.trim() == "0" {
        &USERS
    } else {
        &USERS[1..]
    };
    for program in plan {
        for &user in users {
            let io = |error: std::io::Error| format!("{}: {error}", program.name);
            let log =
                File::create(results.join(format!("{}.{user}.log", program.name))).map_err(io)?;
            let mut words = ORDINARY.split(' ');
            let mut command = match (user, id.trim()) {
                ("user", "0") => {
                    let mut command = Command::new(words.next().unwrap_or_default());
                    command.args(words).arg(&program.path).env("HOME", "/tmp");
                    command
                }
                _ => Command::new(&program.path),
            };
            let start = Instant::now();
            let mut child = command
                .args(program.arguments(user))
                .envs(program.rounds.iter().copied())
                .current_dir(directory)
                .env("LC_ALL", "C")
                .stdin(Stdio::null())
                .stdout(log.try_clone().map_err(io)?)
                .stderr(log)
                .spawn()
                .map_err(io)?;
            let status = match wait(&mut child, limit, || false)? {
                Some(passed) => u8::from(!passed),
                None => {
                    let _ = child.kill();
                    let _ = child.wait();
                    TOO_LONG
                }
            };
            let status = format!("{status} 0 {}\n", start.elapsed().as_secs_f32());
            fs::write(
                results.join(format!("{}.{user}.status", program.name)),
                status,
            )
            .map_err(io)?;
        }
    }
    Ok(())
}
