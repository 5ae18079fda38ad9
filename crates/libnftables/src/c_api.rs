//! The C interface, with the names of libnftables(3). All unsafe code of this crate is here.
//!
//! Every function takes a pointer that `nft_ctx_new` returned and `nft_ctx_free` has not freed, and that no other thread
//! uses meanwhile. Texts are C strings. These are the conditions of the original library, too.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use chainwright_lang::{Definitions, Includes, NftVersion, Options, read_text};
use libc::FILE;

use crate::context::{Context, Error, Output};

unsafe extern "C" {
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;
}

const OUTPUT_REVERSEDNS: c_uint = 1 << 0;
const OUTPUT_SERVICE: c_uint = 1 << 1;
const OUTPUT_STATELESS: c_uint = 1 << 2;
const OUTPUT_HANDLE: c_uint = 1 << 3;
const OUTPUT_JSON: c_uint = 1 << 4;
const OUTPUT_ECHO: c_uint = 1 << 5;
const OUTPUT_GUID: c_uint = 1 << 6;
const OUTPUT_NUMERIC_PROTO: c_uint = 1 << 7;
const OUTPUT_NUMERIC_PRIO: c_uint = 1 << 8;
const OUTPUT_NUMERIC_SYMBOL: c_uint = 1 << 9;
const OUTPUT_NUMERIC_TIME: c_uint = 1 << 10;
const OUTPUT_TERSE: c_uint = 1 << 11;
const INPUT_JSON: c_uint = 1 << 1;
const DEBUG_NETLINK: c_uint = 1 << 3;

/// The environment variable that selects the version of nft in whose form the output is: `1.0` for nft 1.0.6.
const VERSION: &str = "CHAINWRIGHT_NFT_VERSION";

/// A context, as C programs see it: `struct nft_ctx`.
#[derive(Debug)]
pub struct Handle {
    context: Context,
    output: Stream,
    error: Stream,
    output_flags: c_uint,
    input_flags: c_uint,
    debug: c_uint,
    optimize: u32,
    includes: Vec<PathBuf>,
    version: NftVersion,
}

/// A place for text: a C stream, or a buffer.
#[derive(Debug)]
struct Stream {
    file: *mut FILE,
    is_buffered: bool,
    buffer: Vec<u8>,
    /// The content that was last taken from the buffer, with a NUL byte at its end.
    read: Vec<u8>,
}

impl Stream {
    const fn to(file: *mut FILE) -> Self {
        Self {
            file,
            is_buffered: false,
            buffer: Vec::new(),
            read: Vec::new(),
        }
    }

    /// Replaces the stream and returns the previous one; null if the new one is null.
    fn replace(&mut self, file: *mut FILE) -> *mut FILE {
        match file.is_null() {
            true => file,
            false => std::mem::replace(&mut self.file, file),
        }
    }

    fn set_buffered(&mut self, yes: bool) -> c_int {
        self.is_buffered = yes;
        self.buffer.clear();
        0
    }

    /// Empties the buffer, and returns its content as a C string, which is valid until the next call.
    fn take(&mut self) -> *const c_char {
        self.read.clear();
        self.read.append(&mut self.buffer);
        self.read.push(0);
        self.read.as_ptr().cast()
    }
}

impl Stream {
    /// Writes a message. There is no other place to report that this failed.
    fn report(&mut self, message: &str) {
        let _ = self.write_all(message.as_bytes());
        let _ = self.flush();
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_buffered {
            return self.buffer.write(bytes);
        }
        // SAFETY: the pointer and the length are those of a slice, and the program keeps its stream open.
        match unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.file) } {
            0 if !bytes.is_empty() => Err(io::Error::last_os_error()),
            written => Ok(written),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the program keeps its stream open.
        match self.is_buffered || unsafe { libc::fflush(self.file) } == 0 {
            true => Ok(()),
            false => Err(io::Error::last_os_error()),
        }
    }
}

/// The streams of a context.
struct Streams<'h> {
    output: &'h mut Stream,
    error: &'h mut Stream,
}

impl Write for Streams<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Output for Streams<'_> {
    fn note(&mut self, note: &str) {
        self.error.report(&format!("{note}\n"));
    }
}

impl Handle {
    fn new() -> Self {
        // SAFETY: the C library initialized them before the program started, and they are only read here.
        let (out, err) = unsafe { (stdout, stderr) };
        Self {
            context: Context::new(),
            output: Stream::to(out),
            error: Stream::to(err),
            output_flags: 0,
            input_flags: 0,
            debug: 0,
            optimize: 0,
            includes: vec![Context::INCLUDED_FROM.into()],
            version: std::env::var(VERSION)
                .ok()
                .and_then(|name| {
                    NftVersion::ALL
                        .into_iter()
                        .find(|version| version.to_string() == name)
                })
                .unwrap_or_default(),
        }
    }

    /// Runs a text; returns 0, or -1 after it wrote an error.
    fn run(&mut self, name: &str, text: io::Result<Vec<u8>>) -> c_int {
        let done = catch_unwind(AssertUnwindSafe(|| self.try_run(name, text)));
        let message = match done {
            Ok(Ok(())) => return 0,
            Ok(Err(message)) => message,
            Err(_) => "Error: internal error\n".to_owned(),
        };
        self.error.report(&message);
        -1
    }

    fn try_run(&mut self, name: &str, text: io::Result<Vec<u8>>) -> Result<(), String> {
        let text = text.map_err(|error| format!("Error: cannot read {name}: {error}\n"))?;
        if let Some(reason) = self.unsupported() {
            return Err(format!("Error: {reason}\n"));
        }
        self.configure();
        let mut streams = Streams {
            output: &mut self.output,
            error: &mut self.error,
        };
        self.context
            .run(name, text, &mut streams)
            .map_err(|error| match (error.as_nft(), error) {
                (lines, Error::Run(_)) => lines,
                (lines, error) => format!("{lines}Error: {error}\n"),
            })
    }

    /// Returns the reason why the flags cannot be followed.
    const fn unsupported(&self) -> Option<&'static str> {
        if self.output_flags & OUTPUT_REVERSEDNS != 0 {
            Some("host names are not looked up, because DNS can hang or return wrong names")
        } else if self.optimize != 0 {
            Some("rulesets are not optimized: rules are not merged into sets and maps")
        } else if self.debug & !DEBUG_NETLINK != 0 {
            Some("the only supported debug level is netlink")
        } else {
            None
        }
    }

    /// Applies the flags.
    fn configure(&mut self) {
        let has = |flag| self.output_flags & flag != 0;
        let mut options = Options::interfaces_when_needed();
        options.nft_version = self.version;
        options.handles = has(OUTPUT_HANDLE);
        options.stateless = has(OUTPUT_STATELESS);
        options.terse = has(OUTPUT_TERSE);
        options.numeric_priority = has(OUTPUT_NUMERIC_PRIO);
        options.numeric_protocol = has(OUTPUT_NUMERIC_PROTO);
        options.numeric_time = has(OUTPUT_NUMERIC_TIME);
        options.numeric_symbols = has(OUTPUT_NUMERIC_SYMBOL);
        if has(OUTPUT_GUID) {
            options = options.with_accounts();
        }
        if has(OUTPUT_SERVICE) {
            options = options.with_services();
        }
        self.context.json = has(OUTPUT_JSON);
        self.context.echo = has(OUTPUT_ECHO);
        self.context.options = options;
        self.context.json_input = self.input_flags & INPUT_JSON != 0;
        self.context.bytecode = self.debug & DEBUG_NETLINK != 0;
        self.context.includes = Includes::anywhere(self.includes.iter().cloned());
    }
}

/// Returns the handle behind a pointer.
///
/// # Safety
/// The pointer is valid, and nothing else uses it meanwhile: see the module's documentation.
unsafe fn handle<'h>(context: *mut Handle) -> &'h mut Handle {
    // SAFETY: the caller promises this.
    unsafe { &mut *context }
}

/// Returns the bytes of a C string.
///
/// # Safety
/// The pointer leads to a C string that nothing changes meanwhile.
unsafe fn text<'t>(text: *const c_char) -> &'t [u8] {
    // SAFETY: the caller promises this.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// Defines functions of the C interface with a pointer to a context as their first argument.
macro_rules! functions {
    ($($(#[$attribute:meta])* fn $name:ident($handle:ident $(, $argument:ident: $type:ty)*) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        /// `nft` is a pointer from `nft_ctx_new` that is not freed and that nothing else uses meanwhile. Texts are C
        /// strings.
        // SAFETY: no other library of a program that loads this one defines the name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(nft: *mut Handle $(, $argument: $type)*) $(-> $result)? {
            // SAFETY: the caller promises this.
            let $handle = unsafe { handle(nft) };
            $body
        }
    )*};
}

/// Creates a context. The flags have no meaning.
// SAFETY: no other library of a program that loads this one defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn nft_ctx_new(_flags: u32) -> *mut Handle {
    Box::into_raw(Box::new(Handle::new()))
}

/// Frees a context.
///
/// # Safety
/// `nft` is null, or a pointer from `nft_ctx_new` that is not freed and that nothing else uses.
// SAFETY: no other library of a program that loads this one defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nft_ctx_free(nft: *mut Handle) {
    if !nft.is_null() {
        // SAFETY: the caller promises that the pointer is from `nft_ctx_new`, and not used again.
        drop(unsafe { Box::from_raw(nft) });
    }
}

functions! {
    /// Returns `true` if changes are only checked.
    fn nft_ctx_get_dry_run(nft) -> bool {
        nft.context.check
    }

    /// Sets whether changes are only checked.
    fn nft_ctx_set_dry_run(nft, dry: bool) {
        nft.context.check = dry;
    }

    /// Returns the flags of `nft_ctx_set_optimize`.
    fn nft_ctx_get_optimize(nft) -> u32 {
        nft.optimize
    }

    /// Requests the optimization of rulesets, which is not implemented: commands fail then.
    fn nft_ctx_set_optimize(nft, flags: u32) {
        nft.optimize = flags;
    }

    /// Returns the flags of the input.
    fn nft_ctx_input_get_flags(nft) -> c_uint {
        nft.input_flags
    }

    /// Sets the flags of the input, and returns the previous ones. Host names are never looked up.
    fn nft_ctx_input_set_flags(nft, flags: c_uint) -> c_uint {
        std::mem::replace(&mut nft.input_flags, flags)
    }

    /// Returns the flags of the output.
    fn nft_ctx_output_get_flags(nft) -> c_uint {
        nft.output_flags
    }

    /// Sets the flags of the output.
    fn nft_ctx_output_set_flags(nft, flags: c_uint) {
        nft.output_flags = flags;
    }

    /// Returns the debug levels.
    fn nft_ctx_output_get_debug(nft) -> c_uint {
        nft.debug
    }

    /// Sets the debug levels.
    fn nft_ctx_output_set_debug(nft, mask: c_uint) {
        nft.debug = mask;
    }

    /// Sets the stream for the output, and returns the previous one; returns null if the stream is null.
    fn nft_ctx_set_output(nft, file: *mut FILE) -> *mut FILE {
        nft.output.replace(file)
    }

    /// Collects the output in a buffer.
    fn nft_ctx_buffer_output(nft) -> c_int {
        nft.output.set_buffered(true)
    }

    /// Writes the output to its stream again.
    fn nft_ctx_unbuffer_output(nft) -> c_int {
        nft.output.set_buffered(false)
    }

    /// Empties the buffer of the output, and returns its previous content, which is valid until the next call.
    fn nft_ctx_get_output_buffer(nft) -> *const c_char {
        nft.output.take()
    }

    /// Sets the stream for errors, and returns the previous one; returns null if the stream is null.
    fn nft_ctx_set_error(nft, file: *mut FILE) -> *mut FILE {
        nft.error.replace(file)
    }

    /// Collects errors in a buffer.
    fn nft_ctx_buffer_error(nft) -> c_int {
        nft.error.set_buffered(true)
    }

    /// Writes errors to their stream again.
    fn nft_ctx_unbuffer_error(nft) -> c_int {
        nft.error.set_buffered(false)
    }

    /// Empties the buffer of errors, and returns its previous content, which is valid until the next call.
    fn nft_ctx_get_error_buffer(nft) -> *const c_char {
        nft.error.take()
    }

    /// Adds a directory in which included files are searched.
    fn nft_ctx_add_include_path(nft, path: *const c_char) -> c_int {
        // SAFETY: the caller promises that it is a C string.
        let path = OsStr::from_bytes(unsafe { text(path) });
        nft.includes.push(path.into());
        0
    }

    /// Removes all directories in which included files are searched.
    fn nft_ctx_clear_include_paths(nft) {
        nft.includes.clear();
    }

    /// Defines a variable (`name=value`) for texts; returns -1 if this is no definition.
    fn nft_ctx_add_var(nft, definition: *const c_char) -> c_int {
        // SAFETY: the caller promises that it is a C string.
        let definition = String::from_utf8_lossy(unsafe { text(definition) });
        let defined = definition
            .split_once('=')
            .map(|(name, value)| nft.context.definitions.define(name, value));
        match defined {
            Some(Ok(())) => 0,
            _ => -1,
        }
    }

    /// Removes all variables.
    fn nft_ctx_clear_vars(nft) {
        nft.context.definitions = Definitions::default();
    }

    /// Runs commands; returns 0, or -1 after an error.
    fn nft_run_cmd_from_buffer(nft, commands: *const c_char) -> c_int {
        // SAFETY: the caller promises that it is a C string.
        let commands = unsafe { text(commands) };
        nft.run("<cmdline>", Ok(commands.to_vec()))
    }

    /// Runs the commands in a file, or on standard input if its name is `-`; returns 0, or -1 after an error.
    fn nft_run_cmd_from_filename(nft, path: *const c_char) -> c_int {
        // SAFETY: the caller promises that it is a C string.
        let path = OsStr::from_bytes(unsafe { text(path) });
        if path == "-" || path == "/dev/stdin" {
            return nft.run("/dev/stdin", read_text(io::stdin().lock()));
        }
        nft.run(&path.to_string_lossy(), File::open(path).and_then(read_text))
    }
}
