//! The process that is started and killed: this test binary, run again. One of its tests does the task, writes `b` when
//! it begins and `e` when it has ended.

use std::io::{PipeReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chainwright_testing::Sandbox;

/// What the process that is to be killed is to do; its words.
const TASK: &str = "CHAINWRIGHT_TEST_TASK";

/// The victim's task, if this process is one.
pub(crate) fn task() -> Option<String> {
    std::env::var_os(TASK).map(|task| task.into_string().unwrap())
}

/// Tells whoever started the victim.
pub(crate) fn say(letter: &[u8]) {
    std::io::stderr().write_all(letter).unwrap();
}

/// The victim has done its task. Closing the socket waits for the kernel's clean-up, which is no part of it.
pub(crate) fn end() -> ! {
    say(b"e");
    std::process::exit(0);
}

/// A running victim that has begun.
pub(crate) struct Victim {
    child: Child,
    letters: PipeReader,
    pub(crate) begun: Instant,
}

impl Victim {
    /// Starts the test `victim`, by its full name.
    #[track_caller]
    pub(crate) fn start(sandbox: &Sandbox, victim: &str, task: &str) -> Self {
        let (letters, writer) = std::io::pipe().unwrap();
        let child = sandbox
            .run(|| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", victim, "--nocapture", "--test-threads=1"])
                    .env(TASK, task)
                    .env("RUST_BACKTRACE", "0")
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(writer)
                    .spawn()
            })
            .unwrap()
            .unwrap();
        let mut victim = Self {
            child,
            letters,
            begun: Instant::now(),
        };
        let mut letter = [0];
        let begun = victim.letters.read_exact(&mut letter);
        victim.begun = Instant::now();
        if begun.is_err() || letter != *b"b" {
            let mut rest = String::new();
            let _ = victim.letters.read_to_string(&mut rest);
            let _ = victim.child.wait();
            panic!("{task}: {}{rest}", char::from(letter[0]));
        }
        victim
    }

    /// Waits until it has ended; whether it came to the end of its task.
    #[track_caller]
    pub(crate) fn end(mut self) -> bool {
        let mut rest = String::new();
        self.letters.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
        match &rest[..] {
            "" => false,
            "e" => true,
            said => panic!("{said}"),
        }
    }

    /// Kills it so long after it began.
    #[track_caller]
    pub(crate) fn kill(mut self, after: Duration) -> bool {
        // Sleeping is too coarse for the last part.
        thread::sleep(after.saturating_sub(Duration::from_micros(200)));
        while self.begun.elapsed() < after {
            std::hint::spin_loop();
        }
        self.child.kill().unwrap(); // SIGKILL; nothing happens to one that has ended
        self.end()
    }
}
