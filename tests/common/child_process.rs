//! A process that is started and killed: this test binary, run again. One of its tests runs the task, and writes `b`
//! when it begins and `e` when it has ended.

use std::io::{PipeReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chainwright_testing::Sandbox;

/// The variable with the process's task.
const TASK: &str = "CHAINWRIGHT_TEST_TASK";

/// The task, if a test started this process.
pub(crate) fn task() -> Option<String> {
    std::env::var_os(TASK).map(|task| task.into_string().unwrap())
}

/// Sends a letter to the process that started this one.
pub(crate) fn notify(letter: &[u8]) {
    std::io::stderr().write_all(letter).unwrap();
}

/// Ends the process after its task. Skips closing the socket, which would wait for the kernel's clean-up.
pub(crate) fn end() -> ! {
    notify(b"e");
    std::process::exit(0);
}

/// A running process that has begun its task.
pub(crate) struct Victim {
    child: Child,
    letters: PipeReader,
    pub(crate) begun: Instant,
}

impl Victim {
    /// Starts the test with this full name.
    #[track_caller]
    pub(crate) fn start(sandbox: &Sandbox, test_name: &str, task: &str) -> Self {
        let (letters, writer) = std::io::pipe().unwrap();
        let child = sandbox
            .run(|| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", test_name, "--nocapture", "--test-threads=1"])
                    .env(TASK, task)
                    .env("RUST_BACKTRACE", "0")
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(writer)
                    .spawn()
            })
            .unwrap()
            .unwrap();
        let mut process = Self {
            child,
            letters,
            begun: Instant::now(),
        };
        let mut letter = [0];
        let begun = process.letters.read_exact(&mut letter);
        process.begun = Instant::now();
        if begun.is_err() || letter != *b"b" {
            let mut rest = String::new();
            let _ = process.letters.read_to_string(&mut rest);
            let _ = process.child.wait();
            panic!("{task}: {}{rest}", char::from(letter[0]));
        }
        process
    }

    /// Waits until it has ended. Returns whether it completed its task.
    #[track_caller]
    pub(crate) fn end(mut self) -> bool {
        let mut rest = String::new();
        self.letters.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
        match &rest[..] {
            "" => false,
            "e" => true,
            output => panic!("{output}"),
        }
    }

    /// Kills it this long after it began. Returns whether it had completed its task.
    #[track_caller]
    pub(crate) fn kill(mut self, after: Duration) -> bool {
        // Sleeping is too coarse for the last part.
        thread::sleep(after.saturating_sub(Duration::from_micros(200)));
        while self.begun.elapsed() < after {
            std::hint::spin_loop();
        }
        self.child.kill().unwrap(); // SIGKILL; has no effect on a process that has ended
        self.end()
    }
}
