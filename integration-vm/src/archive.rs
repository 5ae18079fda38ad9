//! Debian's archive, accessed with the host's apt but without its configuration: lists, cache and
//! sources are in a separate directory, and packages without a signature by Debian's keys are
//! refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, output};

/// The archive's signing keys, from the package `debian-archive-keyring`.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const MIRROR: &str = "http://deb.debian.org/debian";

/// One suite of the archive.
#[derive(Debug)]
pub(crate) struct Archive {
    directory: PathBuf,
}

impl Archive {
    /// Reads the current packages of a suite. All of apt's files for that are below `directory`.
    pub(crate) fn open(directory: &Path, suite: &str) -> Result<Self> {
        if !Path::new(KEYRING).is_file() {
            return Err(format!(
                "{KEYRING} not found: apt-get install debian-archive-keyring"
            ));
        }
        let archive = Self {
            directory: directory.to_owned(),
        };
        let at = |path: &str| directory.join(path);
        for part in ["lists/partial", "cache/archives/partial", "parts"] {
            fs::create_dir_all(at(part)).map_err(|error| format!("{part}: {error}"))?;
        }
        let sources = format!("deb [arch=amd64 signed-by={KEYRING}] {MIRROR} {suite} main\n");
        let configuration = format!(
            "Dir::State::Lists \"{0}/lists\";\n\
             Dir::State::Status \"{0}/status\";\n\
             Dir::Cache \"{0}/cache\";\n\
             Dir::Etc::SourceList \"{0}/sources.list\";\n\
             Dir::Etc::SourceParts \"{0}/parts\";\n\
             Dir::Etc::Preferences \"{0}/preferences\";\n\
             Dir::Etc::PreferencesParts \"{0}/parts\";\n\
             APT::Architecture \"amd64\";\n\
             APT::Architectures {{ \"amd64\"; }};\n\
             APT::Sandbox::User \"root\";\n\
             APT::Get::AllowUnauthenticated \"false\";\n\
             Acquire::AllowInsecureRepositories \"false\";\n\
             Acquire::Languages \"none\";\n\
             Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
             Acquire::Retries \"3\";\n",
            directory.display()
        );
        for (name, text) in [
            ("sources.list", sources.as_str()),
            ("apt.conf", &configuration),
            ("status", ""),
            ("preferences", ""),
        ] {
            fs::write(at(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        eprintln!("reading the package index of {suite} from {MIRROR}");
        // A source that cannot be reached or has a wrong signature is an error, not a warning.
        output(
            archive
                .apt("apt-get")
                .args(["-q", "-o", "APT::Update::Error-Mode=any", "update"]),
        )?;
        Ok(archive)
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("APT_CONFIG", self.directory.join("apt.conf"))
            .env("LC_ALL", "C");
        command
    }

    /// The packages that a package depends on, without virtual ones.
    pub(crate) fn needs(&self, package: &str) -> Result<Vec<String>> {
        let text = output(
            self.apt("apt-cache")
                .args(["depends", "--important", package]),
        )?;
        let lines = text.lines();
        let needs = lines.filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(needs.map(str::to_owned).collect())
    }

    /// The version of a package.
    pub(crate) fn version(&self, package: &str) -> Result<String> {
        let text = output(
            self.apt("apt-cache")
                .args(["show", "--no-all-versions", package]),
        )?;
        let version = text.lines().find_map(|line| line.strip_prefix("Version: "));
        Ok(version
            .ok_or_else(|| format!("package {package} has no version"))?
            .to_owned())
    }

    /// Downloads packages, verified against the signed lists, and unpacks them into a directory.
    pub(crate) fn unpack(&self, packages: &[String], into: &Path) -> Result<()> {
        let fetched = self.directory.join("packages");
        let _ = fs::remove_dir_all(&fetched);
        fs::create_dir_all(&fetched).map_err(|error| format!("{}: {error}", fetched.display()))?;
        eprintln!("fetching {}", packages.join(" "));
        output(
            self.apt("apt-get")
                .current_dir(&fetched)
                .args(["-q", "download"])
                .args(packages),
        )?;
        let entries = fs::read_dir(&fetched).map_err(|error| error.to_string())?;
        for entry in entries {
            let package = entry.map_err(|error| error.to_string())?.path();
            output(
                Command::new("dpkg-deb")
                    .arg("--extract")
                    .arg(&package)
                    .arg(into),
            )?;
        }
        fs::remove_dir_all(&fetched).map_err(|error| error.to_string())
    }
}
