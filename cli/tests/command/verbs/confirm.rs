//! Changes that are undone unless they are confirmed.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::*;
use crate::common::from_env;
use crate::common::kernel::commit_if_supported;
use crate::common::needs::find;
use crate::common::random::Random;
use crate::common::tools::Tools;

/// The ruleset before the changes, with counters; `LEGACY` and `NFT` are the tables of the two backends.
const NATIVE: &str = "
    table inet t {
        set s { type ipv4_addr; flags interval; elements = { 192.0.2.0/24, 198.51.100.1 } }
        map m { type inet_service : verdict; elements = { 22 : accept } }
        counter hits { packets 5 bytes 500 }
        chain c { counter packets 7 bytes 700 drop; }
        chain b { type filter hook input priority -7; policy accept; ip saddr @s counter packets 3 bytes 300 jump c; tcp dport vmap @m; }
    }";
const NFT: &str = "*filter\n:INPUT ACCEPT [4:400]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [6:600]\n:OLD - [0:0]\n\
                   [8:800] -A INPUT -s 192.0.2.1/32 -j OLD\n[9:900] -A OLD -p tcp -m tcp --dport 22 -j ACCEPT\nCOMMIT\n";
const LEGACY: &str = "*filter\n:INPUT DROP [1:100]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [2:200]\n:OLD - [0:0]\n\
                      [3:300] -A INPUT -s 192.0.2.1/32 -j OLD\n[5:500] -A OLD -p udp -m udp --dport 53 -j ACCEPT\n\
                      COMMIT\n";
/// A new ruleset.
const OTHER: &str = "*filter\n:INPUT DROP [0:0]\n:NEW - [0:0]\n-A INPUT -j NEW\nCOMMIT\n";

/// The maximum time of a wait for another process.
const LIMIT: Duration = Duration::from_secs(120);

#[track_caller]
fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < LIMIT, "{what}");
        sleep(Duration::from_millis(5));
    }
}

/// A network namespace with tables, and the directory of the command's files.
struct Scene {
    sandbox: Sandbox,
    files: TempDir,
}

impl Scene {
    fn empty() -> Self {
        Self {
            sandbox: sandbox(),
            files: tempfile::tempdir().unwrap(),
        }
    }

    fn new() -> Self {
        let scene = Self::empty();
        let tools = scene.tools();
        tools.run_with("nft -f -", NATIVE);
        tools.run_with("iptables-nft-restore -c", NFT);
        tools.run_with("iptables-legacy-restore -c", LEGACY);
        // Nothing removes the legacy tables that a change creates, so those of all verbs exist before.
        for table in ["mangle", "nat"] {
            tools.run(&format!("iptables-legacy -t {table} -S"));
        }
        scene
    }

    fn tools(&self) -> Tools<'_> {
        Tools::new(&self.sandbox)
    }

    /// Writes a file, and returns its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.files.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("CHAINWRIGHT_STATE_DIR", self.files.path().join("state"))
            .env("XTABLES_LOCKFILE", self.files.path().join("xtables.lock"))
            .env_remove("SUDO_USER")
            .env_remove("SSH_CONNECTION")
            .stdin(Stdio::null());
        command
    }

    /// Runs the command without a terminal.
    #[track_caller]
    fn run(&self, line: &str) -> Ran {
        let mut command = self.command(PROGRAM.as_ref());
        command.args(line.split_whitespace());
        let output = self.sandbox.run(|| command.output().unwrap()).unwrap();
        output.into()
    }

    /// Starts the command on a new terminal.
    fn on_terminal(&self, line: &str, typed_ahead: &str) -> Terminal {
        let pty = openpty(None, None).unwrap();
        // Other tests' children must not keep the terminal open.
        for fd in [&pty.master, &pty.slave] {
            fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        }
        let mut master = File::from(pty.master);
        master.write_all(typed_ahead.as_bytes()).unwrap();
        let mut command = self.command(&find("setsid"));
        let (out, err) = (&pty.slave, &pty.slave);
        command
            .args(["--ctty", PROGRAM])
            .args(line.split_whitespace())
            .stdout(out.try_clone().unwrap())
            .stderr(err.try_clone().unwrap())
            .stdin(pty.slave);
        let child = self.sandbox.run(|| command.spawn().unwrap()).unwrap();
        // The child has the only descriptors of the terminal.
        drop(command);
        Terminal {
            child,
            master: Some(master),
            text: String::new(),
        }
    }

    /// Returns the rulesets of both backends. The order in which nft lists tables and their chains is that of their
    /// creation, so these are sorted.
    fn tables(&self) -> String {
        self.listed() + &self.tools().save("iptables-nft-save -c")
    }

    /// Like `tables`, also with rules that iptables cannot express.
    fn listed(&self) -> String {
        let tools = self.tools();
        let ruleset = tools.run("nft list ruleset").replace("\n}\n", "\n\n}\n");
        let mut blocks = Vec::new();
        let mut table = "";
        for block in ruleset.split("\n\n") {
            let block = block.trim_start_matches("}\n");
            if let Some(name) = block
                .lines()
                .next()
                .filter(|line| line.starts_with("table "))
            {
                table = name;
            }
            blocks.push((
                table,
                block.trim_start_matches(table).trim_start_matches('\n'),
            ));
        }
        blocks.sort_unstable();
        let blocks = blocks
            .iter()
            .map(|(table, block)| format!("{table}\n{block}\n"));
        // Listing legacy tables creates none.
        let legacy =
            ["iptables-legacy-save -c", "ip6tables-legacy-save -c"].map(|line| tools.save(line));
        blocks.collect::<String>() + &legacy.concat()
    }

    /// Returns the keepers of this scene's changes, which contain a path of its files.
    fn keepers(&self) -> Vec<Pid> {
        let own = self.files.path().to_str().unwrap();
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let entry = entry.unwrap();
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line);
            (line.starts_with("chainwright-keeper\0") && line.contains(own))
                .then(|| Pid::from_raw(entry.file_name().to_str().unwrap().parse().unwrap()))
        });
        all.collect()
    }

    /// Waits until no change of this scene is pending.
    #[track_caller]
    fn wait_for_keepers(&self) {
        wait_until("the keeper has not ended", || self.keepers().is_empty());
    }
}

/// A terminal with a command on it.
struct Terminal {
    child: Child,
    /// `None` if the terminal was closed.
    master: Option<File>,
    text: String,
}

impl Terminal {
    /// Reads from the terminal until this text appears.
    #[track_caller]
    fn expect(&mut self, text: &str) {
        while !self.text.contains(text) {
            let mut bytes = [0; 1024];
            let length = match self.master.as_mut().unwrap().read(&mut bytes) {
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => 0,
                read => read.unwrap(),
            };
            assert!(length > 0, "no {text:?} in {:?}", self.text);
            self.text += &String::from_utf8_lossy(&bytes[..length]);
        }
    }

    fn type_in(&mut self, text: &str) {
        let master = self.master.as_mut().unwrap();
        master.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the end of the command, and returns its exit code.
    fn end(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// All verbs that change tables, with their changes.
fn verbs(scene: &Scene) -> Vec<String> {
    let other = scene.file("other.save", OTHER);
    let ruleset = scene.file(
        "other.nft",
        "flush ruleset\ntable ip other { chain c { type filter hook input priority 0; drop; }; }\n",
    );
    let backup = scene.files.path().join("snapshot");
    let backup = backup.display();
    let elsewhere = Scene::empty();
    elsewhere
        .tools()
        .run_with("nft -f -", "table inet t { chain c { accept; }; }");
    elsewhere.run(&format!("snapshot {backup}")).expect(0);
    vec![
        format!("apply {ruleset}"),
        format!("apply --replace {backup}"),
        format!("apply --prune {backup}"),
        format!("apply {other}"),
        format!("apply --counters --noflush {other}"),
        format!("apply --keep O* {other}"),
        format!("apply --backend legacy {other}"),
        "delete chains OLD".to_owned(),
        "delete chains OLD --backend legacy".to_owned(),
        "kube ensure --force".to_owned(),
        "kube ensure --force --backend legacy -4".to_owned(),
    ]
}

/// Adds a comment with a path, by which [`Scene::keepers`] finds the keeper, and `--confirm`.
fn confirmed_within(scene: &Scene, seconds: u32, verb: &str) -> String {
    // The file of the lock is an option of verbs for legacy tables only.
    let lock = scene.files.path().join("xtables.lock");
    match verb.split(' ').next().unwrap() {
        "delete" | "kube" | "convert" => {
            format!("{verb} --confirm {seconds} --lock {}", lock.display())
        }
        _ => format!("{verb} --confirm {seconds}"),
    }
}

#[test]
fn unconfirmed_changes_are_undone_and_confirmed_ones_stay() {
    let count = verbs(&Scene::new()).len();
    for number in 0..count {
        let scene = Scene::new();
        let verb = &verbs(&scene)[number];
        let before = scene.tables();
        let ran = scene.run(&confirmed_within(&scene, 1, verb)).expect(0);
        assert!(
            ran.err.contains("`chainwright confirm`"),
            "{verb}: {}",
            ran.err
        );
        scene.wait_for_keepers();
        assert_eq!(scene.tables(), before, "{verb}");
        let ran = scene.run("get pending").expect(1);
        assert!(
            ran.err.contains("was undone: not confirmed within 1 s"),
            "{}",
            ran.err
        );

        let ran = scene.run(&confirmed_within(&scene, 3600, verb)).expect(0);
        let changed = scene.tables();
        assert_ne!(changed, before, "{verb}: {}", ran.err);
        let pending = scene.run("get pending").expect(0);
        assert!(
            pending
                .out
                .contains(&format!("change   {verb} --confirm 3600")),
            "{}",
            pending.out
        );
        let kept = scene.run("confirm").expect(0);
        assert!(
            kept.out.starts_with(&format!("kept     {verb}")),
            "{}",
            kept.out
        );
        scene.wait_for_keepers();
        assert_eq!(scene.tables(), changed, "{verb}");
        assert!(
            scene
                .run("get pending")
                .expect(1)
                .err
                .ends_with("was kept\n")
        );
        scene.run("confirm").expect(1);
    }
}

#[test]
fn a_migration_is_undone_in_both_backends() {
    for (from, to) in [("legacy", "nft"), ("nft", "legacy")] {
        let scene = Scene::empty();
        let tools = scene.tools();
        match from {
            "nft" => tools.run_with("iptables-nft-restore -c", NFT),
            _ => tools.run_with("iptables-legacy-restore -c", LEGACY),
        };
        let before = scene.tables();
        let verb = confirmed_within(
            &scene,
            1,
            &format!("convert --in-place --from {from} --to {to}"),
        );
        scene.run(&verb).expect(0);
        scene.wait_for_keepers();
        let empty =
            "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
        let after = scene.tables();
        match from {
            // The empty legacy table remains.
            "nft" => assert_eq!(after.replace(empty, ""), before),
            _ => assert_eq!(after, before),
        }
    }
}

#[test]
fn a_user_confirms_or_undoes_on_a_terminal() {
    let scene = Scene::new();
    let before = scene.tables();
    let file = scene.file("other.save", OTHER);
    let prompt = "press Enter";

    // What was typed before the change confirms nothing.
    let line = format!("apply --backend legacy {file} --confirm 1");
    let mut terminal = scene.on_terminal(&line, "\ny\n");
    terminal.expect(prompt);
    terminal.expect("the change was undone");
    assert_eq!(terminal.end(), Some(1), "{}", terminal.text);
    scene.wait_for_keepers();
    assert_eq!(scene.tables(), before);

    let line = format!("apply {file} --confirm 3600");
    let mut terminal = scene.on_terminal(&line, "");
    terminal.expect(prompt);
    terminal.type_in("n\n");
    terminal.expect("the change was undone");
    assert_eq!(terminal.end(), Some(1), "{}", terminal.text);
    assert_eq!(scene.tables(), before);

    // The end of the input is no answer, and another session can confirm.
    let mut terminal = scene.on_terminal(&line, "");
    terminal.expect(prompt);
    terminal.type_in("\u{4}");
    scene.run("get pending").expect(0);
    scene.run("confirm").expect(0);
    terminal.expect("the change is kept");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text);

    let line = format!("apply --backend legacy {file} --confirm 3600");
    let mut terminal = scene.on_terminal(&line, "");
    terminal.expect(prompt);
    terminal.type_in("\n");
    terminal.expect("the change is kept");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text);
    scene.wait_for_keepers();
    let after = scene.tables();
    assert!(after.matches(":NEW - [0:0]").count() == 2, "{after}");
}

/// A file, the directory or a process is in the way: then nothing is changed.
#[test]
fn without_a_keeper_nothing_is_changed() {
    let scene = Scene::new();
    let before = scene.tables();
    let file = scene.file("other.save", OTHER);
    let line = format!("apply {file} --confirm 3600");
    let refused = |command: &mut Command| {
        let output = scene.sandbox.run(|| command.output().unwrap()).unwrap();
        let ran = Ran::from(output).expect(2);
        assert!(ran.err.contains("nothing was changed"), "{}", ran.err);
        assert_eq!(scene.tables(), before, "{}", ran.err);
        ran.err
    };
    let in_directory = |path: &Path| {
        let mut command = scene.command(PROGRAM.as_ref());
        command
            .args(line.split(' '))
            .env("CHAINWRIGHT_STATE_DIR", path);
        refused(&mut command)
    };
    let below_a_file = Path::new(&file).join("state");
    assert!(in_directory(&below_a_file).contains("Not a directory"));
    let open = scene.files.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(in_directory(&open).contains("mode 0700"));

    // The keeper ends before it is ready.
    let mut command = scene.command(&find("strace"));
    command
        .args([
            "-f",
            "-qqq",
            "-o",
            "/dev/null",
            "-e",
            "inject=setsid:error=EPERM",
            PROGRAM,
        ])
        .args(line.split(' '));
    refused(&mut command);

    // One change at a time.
    scene
        .run(&confirmed_within(
            &scene,
            3600,
            "delete chains OLD --backend legacy",
        ))
        .expect(0);
    let now = scene.tables();
    let second = scene.run(&line).expect(2);
    assert!(
        second
            .err
            .contains("another change waits for its confirmation: `delete chains OLD"),
        "{}",
        second.err
    );
    assert_eq!(scene.tables(), now);
    // Another network namespace has its own.
    let mut command = scene.command(PROGRAM.as_ref());
    let elsewhere = sandbox();
    let output = elsewhere
        .run(|| command.args(["get", "pending"]).output().unwrap())
        .unwrap();
    Ran::from(output).expect(1);
    // Options that only check do not change anything that could be undone.
    for line in [
        "apply --dry-run",
        "apply --check",
        "apply --replace --dry-run x",
        "convert --in-place --dry-run",
    ] {
        scene.run(&format!("{line} --confirm 9")).expect(2);
    }
    let [keeper] = scene.keepers()[..] else {
        panic!()
    };
    kill(keeper, Signal::SIGTERM).unwrap();
    scene.wait_for_keepers();
    assert_eq!(
        scene.tables(),
        before,
        "the keeper restores the state before it ends"
    );
}

#[test]
fn a_killed_keeper_is_reported() {
    let scene = Scene::new();
    let file = scene.file("other.save", OTHER);
    let line = format!("apply {file} --confirm 3600");
    let mut terminal = scene.on_terminal(&line, "");
    terminal.expect("press Enter");
    let [keeper] = scene.keepers()[..] else {
        panic!()
    };
    kill(keeper, Signal::SIGKILL).unwrap();
    terminal.expect("the change is in force, and will not be undone");
    assert_eq!(terminal.end(), Some(2));
    for verb in ["pending", "confirm"] {
        let ran = scene.run(verb).expect(2);
        assert!(
            ran.err.contains("was neither confirmed nor undone"),
            "{}",
            ran.err
        );
    }
    // Its files do not prevent the next change.
    scene.run(&line.replace("3600", "1")).expect(0);
    scene.wait_for_keepers();
    scene.run("get pending").expect(1);
}

/// A command that waits for the lock of the legacy tools, and could still change something later, is killed.
#[test]
fn a_command_that_hangs_is_killed() {
    let scene = Scene::new();
    let before = scene.tables();
    let path = scene.files.path().join("xtables.lock");
    let held =
        legacy::Lock::take(&legacy::LockPolicy::Path(path), chainwright::Retry::ONCE).unwrap();
    let line = confirmed_within(
        &scene,
        3600,
        "delete chains OLD --backend legacy --wait 3600",
    );
    let mut terminal = scene.on_terminal(&line, "");
    wait_until("the keeper is not ready", || {
        scene.run("get pending").code == 0
    });
    let ran = scene.run("get pending").expect(0);
    assert!(
        ran.out.contains("the change is not complete yet"),
        "{}",
        ran.out
    );
    let ran = scene.run("confirm").expect(2);
    assert!(ran.err.contains("not complete yet"), "{}", ran.err);
    let [keeper] = scene.keepers()[..] else {
        panic!()
    };
    kill(keeper, Signal::SIGTERM).unwrap();
    assert_eq!(terminal.end(), None, "killed");
    scene.wait_for_keepers();
    drop(held);
    assert_eq!(scene.tables(), before);
}

/// A caller that waits for the end of a pipe does not wait for the confirmation.
#[test]
fn the_keeper_closes_inherited_pipes() {
    let scene = Scene::new();
    let file = scene.file("other.save", OTHER);
    let mut command = scene.command("/bin/sh".as_ref());
    let line = format!("exec 9>&1; exec {PROGRAM} restore {file} --confirm 3600");
    command.args(["-c", &line]);
    let output = scene.sandbox.run(|| command.output().unwrap()).unwrap();
    Ran::from(output).expect(0);
    scene.run("confirm").expect(0);
}

#[test]
fn a_change_that_fails_in_part_is_undone_at_once() {
    let scene = Scene::new();
    // iptables cannot express this jump, so the chain cannot be removed from nf_tables.
    scene
        .tools()
        .run("nft add rule ip filter OUTPUT meta length 5 jump OLD");
    let before = scene.listed();
    let ran = scene
        .run(&confirmed_within(&scene, 3600, "delete chains OLD"))
        .expect(2);
    assert!(
        ran.err.contains("what it had changed was undone"),
        "{}",
        ran.err
    );
    scene.wait_for_keepers();
    assert_eq!(scene.listed(), before);
    // A failure that changed nothing leaves nothing to undo.
    let file = scene.file("wrong.save", "*filter\n-A NONE -j ACCEPT\nCOMMIT\n");
    let ran = scene.run(&format!("apply {file} --confirm 3600")).expect(2);
    assert!(!ran.err.contains("undone"), "{}", ran.err);
    scene.wait_for_keepers();
    assert!(
        scene
            .run("get pending")
            .expect(1)
            .err
            .ends_with("changed nothing\n")
    );
    // Neither does a change to the same state.
    let file = scene.file("same.nft", "add table inet t\n");
    let ran = scene.run(&format!("apply {file} --confirm 3600")).expect(0);
    assert!(ran.err.contains("nothing to confirm"), "{}", ran.err);
}

/// What other programs change meanwhile stays in all tables except those that the change has changed.
#[test]
fn only_changed_tables_are_restored() {
    let scene = Scene::new();
    let tools = scene.tools();
    let before = tools.run("nft list table inet t");
    let file = scene.file("change.nft", "add rule inet t c accept\n");
    scene.run(&format!("apply {file} --confirm 3600")).expect(0);
    tools.run("nft add rule inet t c reject");
    tools.run("nft add element inet t s { 203.0.113.1 }");
    tools.run("nft add table ip later");
    tools.run("iptables-nft -A OUTPUT -j DROP");
    tools.run("iptables-legacy -A OUTPUT -j DROP");
    let others = ["iptables-nft-save -c", "iptables-legacy-save -c"].map(|line| tools.save(line));
    let [keeper] = scene.keepers()[..] else {
        panic!()
    };
    kill(keeper, Signal::SIGTERM).unwrap();
    scene.wait_for_keepers();
    assert_eq!(tools.run("nft list table inet t"), before);
    assert!(tools.run("nft list tables").contains("table ip later"));
    assert_eq!(
        ["iptables-nft-save -c", "iptables-legacy-save -c"].map(|line| tools.save(line)),
        others
    );
}

/// Tables whose counters and dynamic sets packets change, while a verb changes other tables, do not count as changed.
#[test]
fn packets_change_no_tables() {
    let scene = Scene::new();
    let tools = scene.tools();
    tools.run("ip link set lo up");
    tools.run_with(
        "nft -f -",
        "table ip p {
            set d { type inet_service; flags dynamic; }
            chain o { type filter hook output priority 0; counter; udp dport 1000-2000 add @d { udp dport }; }
         }",
    );
    tools.run("iptables-legacy -t mangle -A OUTPUT -p udp");
    let listings = || {
        ["nft list table ip p", "iptables-legacy-save -c -t mangle"].map(|line| tools.save(line))
    };
    let path = scene.files.path().join("xtables.lock");
    let held =
        legacy::Lock::take(&legacy::LockPolicy::Path(path), chainwright::Retry::ONCE).unwrap();
    let line = confirmed_within(&scene, 3600, "delete chains OLD --wait 3600");
    let mut terminal = scene.on_terminal(&line, "");
    // Now it has changed nf_tables, and waits for the lock.
    wait_until("nothing is changed", || {
        !tools.run("nft list table ip filter").contains("OLD")
    });
    let before = listings();
    scene
        .sandbox
        .run(|| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(b"x", "127.0.0.1:1234").unwrap();
        })
        .unwrap();
    let after = listings();
    assert!(before[0] != after[0] && before[1] != after[1], "{after:?}");
    assert!(after[0].contains("elements = { 1234"), "{}", after[0]);
    drop(held);
    terminal.expect("press Enter");
    let pending = scene.run("get pending").expect(0);
    let tables = pending.out.lines().filter(|line| line.starts_with("table"));
    assert_eq!(
        tables.collect::<Vec<_>>(),
        ["table    nft ip filter", "table    legacy ip filter"]
    );
    terminal.type_in("n\n");
    assert_eq!(terminal.end(), Some(1));
    assert_eq!(listings(), after);
}

/// The keeper tries several times, and then records what it could not restore. The other backend is restored anyway, also
/// if another process holds the lock of the legacy tools.
#[test]
fn a_failure_to_undo_is_recorded() {
    let scene = Scene::new();
    let tools = scene.tools();
    let legacy = tools.save("iptables-legacy-save -c");
    scene
        .run(&confirmed_within(
            &scene,
            3600,
            "delete chains OLD --wait 0",
        ))
        .expect(0);
    let path = scene.files.path().join("xtables.lock");
    let held =
        legacy::Lock::take(&legacy::LockPolicy::Path(path), chainwright::Retry::ONCE).unwrap();
    tools.run("nft delete table ip filter");
    let mut owner = connect(&scene.sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table {
        flags: Some(chainwright::nft::TableFlags::OWNER),
        ..Table::new(Family::IP, "filter")
    })
    .unwrap();
    let is_owned = commit_if_supported(&mut owner, &mut tx, &["owned tables"]);
    let [keeper] = scene.keepers()[..] else {
        panic!()
    };
    kill(keeper, Signal::SIGTERM).unwrap();
    scene.wait_for_keepers();
    assert!(held.is_held());
    assert_eq!(tools.save("iptables-legacy-save -c"), legacy);
    let code = if is_owned { 2 } else { 1 };
    let ran = scene.run("get pending").expect(code);
    if is_owned {
        assert!(
            ran.err.contains("could not be undone: ")
                && ran.err.contains("another process owns table ip filter"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn pending_changes_as_json() {
    let scene = Scene::new();
    assert_eq!(
        scene.run("get pending --json").expect(1).value(),
        serde_json::json!({})
    );
    let mut command = scene.command(PROGRAM.as_ref());
    command.env("SSH_CONNECTION", "192.0.2.7 1 192.0.2.8 22");
    let line = confirmed_within(&scene, 3600, "delete chains OLD");
    command.args(line.split(' '));
    let output = scene.sandbox.run(|| command.output().unwrap()).unwrap();
    Ran::from(output).expect(0);
    let pending = scene.run("get pending --json").expect(0);
    let change = &pending.value()["change"];
    assert_eq!(change["what"], line);
    assert_eq!(change["from"], "192.0.2.7");
    assert_eq!(
        change["tables"],
        serde_json::json!(["nft ip filter", "legacy ip filter"])
    );
    let [keeper] = scene.keepers()[..] else {
        panic!()
    };
    kill(keeper, Signal::SIGTERM).unwrap();
    scene.wait_for_keepers();
    let undone = scene.run("get pending --json").expect(1);
    super::json::check("pending", &[&pending, &undone]);
    scene.run(&line).expect(0);
    let kept = scene.run("confirm --json").expect(0);
    super::json::check("confirm", &[&kept]);
    assert_eq!(kept.value()["change"]["state"], "kept");
}

/// How an operator is cut off.
#[derive(Debug, Clone, Copy)]
enum CutOff {
    Killed,
    HungUp,
    TerminalClosed,
    LinkDown,
}

/// Cuts the operator off at random moments. Afterwards the tables are always those before the change.
/// `CHAINWRIGHT_CUT_OFFS` sets the number of trials.
#[test]
fn a_lost_connection_undoes_the_change() {
    let mut random = Random::new();
    let scene = Scene::new();
    let tools = scene.tools();
    let verbs: Vec<_> = verbs(&scene)
        .into_iter()
        .filter(|verb| !verb.starts_with("kube"))
        .collect();
    let before = scene.tables();
    let all = [
        CutOff::Killed,
        CutOff::HungUp,
        CutOff::TerminalClosed,
        CutOff::LinkDown,
    ];
    let (mut undone, mut unchanged) = (0, 0);
    for trial in 0..from_env("CHAINWRIGHT_CUT_OFFS", 16) {
        tools.run("ip link set lo up");
        tools.run("ip route replace default dev lo");
        let verb = random.of(&verbs).clone();
        let cut_off = all[trial % all.len()];
        let line = confirmed_within(&scene, 1, &verb);
        let mut terminal = scene.on_terminal(&line, "");
        // Half of them after the prompt, the others also while the change is made.
        let is_late = random.once_in(2);
        if is_late {
            terminal.expect("press Enter");
        }
        let delay = random.within(Duration::from_millis(60));
        sleep(delay);
        let pid = Pid::from_raw(i32::try_from(terminal.child.id()).unwrap());
        match cut_off {
            CutOff::Killed => kill(pid, Signal::SIGKILL).unwrap(),
            CutOff::HungUp => kill(pid, Signal::SIGHUP).unwrap(),
            CutOff::TerminalClosed => drop(terminal.master.take()),
            CutOff::LinkDown => {
                tools.run("ip route del default");
                tools.run("ip link set lo down");
                kill(pid, Signal::SIGKILL).unwrap();
            }
        }
        terminal.end();
        scene.wait_for_keepers();
        assert_eq!(
            scene.tables(),
            before,
            "trial {trial}: {verb}, {cut_off:?} after {delay:?}"
        );
        let last = scene.run("get pending").expect(1).err;
        match last.contains("was undone") {
            true => undone += 1,
            false => unchanged += 1,
        }
    }
    println!("{undone} changes were undone, {unchanged} had changed nothing");
}

/// Before the command waits, it prints what has changed.
#[test]
fn the_changes_are_printed_before_the_confirmation() {
    let scene = Scene::new();
    let file = scene.file(
        "changes.nft",
        "add table ip shown { chain c { tcp dport 22 drop; }; }",
    );
    let ran = scene.run(&format!("apply --confirm 600 {file}")).expect(0);
    let lines = "+ table ip shown\n+ chain ip shown c\n+ rule ip shown c: tcp dport 22 drop\n";
    assert!(ran.err.starts_with(lines), "{}", ran.err);
    scene.run("confirm").expect(0);
    let many: String = (0..30)
        .map(|port| format!("add rule ip shown c tcp dport {port} drop\n"))
        .collect();
    let file = scene.file("many.nft", &many);
    let ran = scene.run(&format!("apply --confirm 600 {file}")).expect(0);
    assert_eq!(ran.err.matches("+ rule ").count(), 20, "{}", ran.err);
    assert!(ran.err.contains("and 10 more changes"), "{}", ran.err);
    scene.run("confirm").expect(0);
}
