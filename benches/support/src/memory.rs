//! Memory of the process.

use std::io;

use super::Error;

/// Returns the bytes of memory of this process (`VmRSS` in `/proc/self/status`).
///
/// # Errors
/// [`Error::Memory`].
pub fn resident() -> Result<usize, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix(" kB"));
    let kilobytes: Option<usize> = line.and_then(|line| line.trim().parse().ok());
    let missing = || io::Error::from(io::ErrorKind::InvalidData);
    Ok(kilobytes.ok_or_else(missing)? * 1024)
}
