//! Writes the public API of each library to `api/`, one item per line, so that a diff shows what a change means for the
//! crates' users.
//!
//! `cargo run -p chainwright-api` writes the files. `cargo run -p chainwright-api -- --check`, as in `.ci/run`, compares
//! them, and exits with 1 if they differ.
//!
//! It renders rustdoc's JSON, whose format changes between versions of Rust. If it cannot read the format of the
//! installed rustdoc, it renders nothing, reports this, and exits with 3.

use std::error::Error;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The format of rustdoc's JSON that is read here.
const FORMAT: u64 = 57;

/// What ends the program when rustdoc writes another format.
const OTHER_FORMAT: u8 = 3;

const LIBRARIES: [&str; 7] = [
    "chainwright",
    "chainwright-lang",
    "chainwright-libnftables",
    "chainwright-record",
    "chainwright-testing",
    "chainwright-trace",
    "chainwright-kube",
];

/// Set for this program where Cargo runs it in place of rustdoc.
const AS_RUSTDOC: &str = "CHAINWRIGHT_API_AS_RUSTDOC";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if std::env::var_os(AS_RUSTDOC).is_some() {
        // Cargo itself must not see RUSTC_BOOTSTRAP: the build scripts of dependencies look at it, so everything
        // would be built once more.
        let mut rustdoc = Command::new("rustdoc");
        rustdoc.args(std::env::args_os().skip(1));
        return Err(rustdoc.env("RUSTC_BOOTSTRAP", "1").exec().into());
    }
    let check = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => {
            return Err(format!("unknown option `{other}`: the only option is --check").into());
        }
    };
    // Of the checkout that it runs in, which need not be the one that it was built in.
    let root = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(package) => Path::new(&package).join(".."),
        None => std::env::current_dir()?,
    };
    rustdoc(&root)?;
    let mut code = ExitCode::SUCCESS;
    for library in LIBRARIES {
        match compare(&root, library, check)? {
            Compared::Same => {}
            Compared::Differs => code = ExitCode::FAILURE,
            Compared::OtherFormat => return Ok(ExitCode::from(OTHER_FORMAT)),
        }
    }
    Ok(code)
}

/// What came of one library.
enum Compared {
    Same,
    Differs,
    OtherFormat,
}

/// Writes a library's file, or compares it.
fn compare(root: &Path, library: &str, check: bool) -> Result<Compared, Box<dyn Error>> {
    let json = root.join("target/doc").join(library.replace('-', "_"));
    let json = json.with_extension("json");
    let format = format_of(&json)?;
    if format != FORMAT {
        eprintln!(
            "this toolchain's rustdoc writes format {format}; the file is rendered from format {FORMAT} \
             (Rust 1.95) only: not compared"
        );
        return Ok(Compared::OtherFormat);
    }
    let api = public_api::Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    let rendered = format!(
        "# The public API of {library}, all features; made by `cargo run -p chainwright-api`.\n\
         # Omitted: automatic implementations, and blanket implementations.\n\
         {api}"
    );
    let file = root.join("api").join(library).with_extension("txt");
    if !check {
        std::fs::write(&file, rendered)?;
        return Ok(Compared::Same);
    }
    let kept = std::fs::read_to_string(&file)?;
    if kept == rendered {
        return Ok(Compared::Same);
    }
    let diff = similar::TextDiff::from_lines(&kept, &rendered);
    for hunk in diff.unified_diff().context_radius(0).iter_hunks() {
        println!("{hunk}");
    }
    eprintln!(
        "the public API differs from api/{library}.txt; to accept the change: cargo run -p chainwright-api"
    );
    Ok(Compared::Differs)
}

/// Has rustdoc describe the libraries as JSON in `target/doc`, from what `cargo doc` and Clippy have checked already.
fn rustdoc(root: &Path) -> Result<(), Box<dyn Error>> {
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .env("RUSTDOC", std::env::current_exe()?)
        .env(AS_RUSTDOC, "1")
        .env(
            "RUSTDOCFLAGS",
            "-Z unstable-options --output-format json --cap-lints allow",
        )
        .args(["doc", "--quiet", "--locked", "--workspace", "--lib"])
        .args(["--no-deps", "--all-features", "--target-dir"])
        .arg(root.join("target"))
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err("rustdoc failed".into()),
    }
}

/// The number of the format.
fn format_of(json: &Path) -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read(json)?;
    let value: serde_json::Value = serde_json::from_slice(&text)?;
    let format = value
        .get("format_version")
        .and_then(serde_json::Value::as_u64);
    Ok(format.ok_or("rustdoc's JSON has no format version")?)
}
