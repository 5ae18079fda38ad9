//! The initial file system of a machine: busybox, the modules for the real one, and the script that continues from
//! there, in cpio's `newc` format (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::fs;
use std::path::Path;

use crate::Result;
use crate::kernel::Installed;

/// The script of the machine's first process.
const INIT: &str = include_str!("guest/init.sh");
/// The script that runs in the real file system.
const RUN: &str = include_str!("guest/run.sh");
/// The modules that the guest needs to access the host's files.
const MODULES: [&str; 5] = ["virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_rng"];

/// Writes the initramfs to a file.
pub(crate) fn write(kernel: &Installed, file: &Path) -> Result<()> {
    let busybox = ["/usr/bin/busybox", "/bin/busybox"]
        .iter()
        .find_map(|path| fs::read(path).ok())
        .ok_or("busybox is not installed: apt-get install busybox-static")?;
    let mut archive = Archive::default();
    for directory in ["bin", "modules"] {
        archive.add(directory, DIRECTORY, b"");
    }
    archive.add("bin/busybox", PROGRAM, &busybox);
    archive.add("init", PROGRAM, INIT.as_bytes());
    archive.add("run", PROGRAM, RUN.as_bytes());
    let mut order = String::new();
    for path in kernel.closure(&MODULES)? {
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        archive.add(&format!("modules/{name}"), FILE, &bytes);
        order += &format!("{name}\n");
    }
    archive.add("modules/order", FILE, order.as_bytes());
    fs::write(file, archive.finish()).map_err(|error| format!("{}: {error}", file.display()))
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;

/// A cpio archive that is being written.
#[derive(Debug, Default)]
struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.files += 1;
        // Inode, mode, user, group, links, time, size, two device pairs, length of the name, checksum.
        let fields = [
            self.files,
            mode,
            0,
            0,
            1,
            0,
            content.len() as u32,
            0,
            0,
            0,
            0,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        let length = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(length, 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, b"");
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::{Archive, DIRECTORY, FILE};

    #[test]
    fn cpio_can_read_the_archive() {
        let mut archive = Archive::default();
        archive.add("d", DIRECTORY, b"");
        archive.add("d/three", FILE, b"abc");
        archive.add("d/none", FILE, b"");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let header = &bytes[..110];
        assert!(header.starts_with(b"070701"), "{header:?}");
        // If busybox is installed, its cpio must agree.
        let Ok(mut child) = Command::new("busybox")
            .args(["cpio", "-t"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
        else {
            eprintln!("skipped: busybox is not installed");
            return;
        };
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "d\nd/three\nd/none\n"
        );
    }
}
