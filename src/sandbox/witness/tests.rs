//! The witness of real commands, confined by Landlock.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::ptr;
use std::time::Instant;

use super::super::landlock;
use super::super::policy::{Mode, Network};
use super::*;

/// A workspace, a directory for temporary files, and a place outside of both.
struct Scene {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "scratch", "outside", "secret", "outside/empty"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("outside/file"), "text").unwrap();
        Scene { _folder: folder, root }
    }

    fn terms(&self) -> Terms {
        Terms {
            mode: Mode::WorkspaceWrite,
            network: Network::Full,
            workspace: self.root.join("work"),
            writable: vec![self.root.join("work")],
            hidden: vec![self.root.join("secret")],
            workdir: None,
            as_given: Vec::new(),
            backends: Vec::new(),
            runner: None,
        }
    }

    /// A command with the filter, which starts in the workspace, and its witness.
    fn start(&self, mut command: Command) -> (Child, Witness) {
        let (ours, theirs) = socket_pair();
        let (program, flags) = (filter(), flags().expect("a kernel that lets announced calls go on"));
        // What is hidden has rights around it granted one by one, which others that work in the same place disturb.
        let terms = Terms { hidden: Vec::new(), ..self.terms() };
        let ruleset = landlock::ruleset(&terms, &self.root.join("scratch")).unwrap();
        let (socket, rules) = (theirs.as_raw_fd(), ruleset.as_raw_fd());
        command.current_dir(self.root.join("work")).env("ROOT", &self.root).stdin(Stdio::null());
        // SAFETY: system calls only, on memory that was made before.
        unsafe { command.pre_exec(move || install(program, flags, socket, rules)) };
        let child = command.spawn().unwrap();
        let listener = receive(ours.as_fd());
        (child, Witness::new(listener, Arc::new(self.terms()), Some(self.root.join("scratch"))))
    }

    fn run(&self, script: &str) -> (ExitStatus, Witness) {
        let mut command = Command::new("bash");
        command.args(["-c", script]).stderr(Stdio::null());
        let (child, witness) = self.start(command);
        serve(child, witness)
    }

    /// What a script tries, by name, as seen from the scene.
    fn tried(&self, script: &str) -> Vec<String> {
        let (_, witness) = self.run(script);
        assert!(witness.testimony().is_some(), "the witness saw everything");
        let names = witness.attempts().iter().map(|attempt| {
            assert!(attempt.sure);
            attempt.path.strip_prefix(&self.root).unwrap_or(&attempt.path).to_str().unwrap().to_owned()
        });
        names.collect()
    }
}

fn socket_pair() -> (OwnedFd, OwnedFd) {
    use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
    socketpair(AddressFamily::Unix, SockType::Datagram, None, SockFlag::SOCK_CLOEXEC).unwrap()
}

/// Answers until nobody uses the filter any more.
fn serve(child: Child, witness: Witness) -> (ExitStatus, Witness) {
    let (status, witness, _) = count(child, witness);
    (status, witness)
}

/// The same, and says how many calls were announced.
fn count(mut child: Child, mut witness: Witness) -> (ExitStatus, Witness, usize) {
    let waiter = std::thread::spawn(move || child.wait().unwrap());
    let mut poll = libc::pollfd { fd: witness.fd(), events: libc::POLLIN, revents: 0 };
    let mut announced = 0;
    loop {
        // SAFETY: one valid entry.
        unsafe { libc::poll(&mut poll, 1, -1) };
        announced += usize::from(poll.revents & libc::POLLIN != 0);
        if witness.answer(1) == State::Over {
            return (waiter.join().unwrap(), witness, announced);
        }
    }
}

/// In the child: confines it, installs the filter, and hands the listener over.
fn install(
    program: &'static [libc::sock_filter],
    flags: libc::c_ulong,
    socket: RawFd,
    rules: RawFd,
) -> std::io::Result<()> {
    let failed = || Err(std::io::Error::last_os_error());
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program is static; the message and its buffers are this stack's.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
            || libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) < 0
        {
            return failed();
        }
        let listener = libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) as i32;
        if listener < 0 {
            return failed();
        }
        let mut byte = 0u8;
        let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let mut control = [0u64; 8];
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<i32>(), listener);
        if libc::sendmsg(socket, &raw const message, 0) < 0 {
            return failed();
        }
    }
    Ok(())
}

fn receive(socket: BorrowedFd<'_>) -> OwnedFd {
    use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags};
    let mut byte = [0];
    let mut data = [std::io::IoSliceMut::new(&mut byte)];
    let mut control = nix::cmsg_space!(RawFd);
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut data, Some(&mut control), MsgFlags::MSG_CMSG_CLOEXEC).unwrap();
    let received = message.cmsgs().unwrap().find_map(|message| match message {
        ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
        _ => None,
    });
    // SAFETY: just received, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(received.unwrap()) }
}

#[test]
fn each_way_of_changing_something_by_its_path_is_seen() {
    let table = [
        ("echo x > $ROOT/outside/new", "outside/new"),
        ("echo x >> $ROOT/outside/file", "outside/file"),
        ("echo x >> ../outside/file", "outside/file"),
        ("cd ../outside && echo x > ./here", "outside/here"),
        ("mkdir $ROOT/outside/d", "outside/d"),
        ("rm $ROOT/outside/file", "outside/file"),
        ("rmdir $ROOT/outside/empty", "outside/empty"),
        ("mkfifo $ROOT/outside/p", "outside/p"),
        ("ln -s /etc $ROOT/outside/l", "outside/l"),
        ("truncate -s 0 $ROOT/outside/file", "outside/file"),
        ("chmod 600 $ROOT/outside/file", "outside/file"),
        ("chown $(id -u) $ROOT/outside/file", "outside/file"),
        ("touch -h $ROOT/outside/file", "outside/file"),
        ("echo x > $ROOT/secret/s", "secret/s"),
        ("[ -w $ROOT/outside/file ]", "outside/file"),
        // Perl makes the old calls, one that goes by a descriptor of a directory, and ones of no coreutil.
        ("perl -e 'truncate(\"$ENV{ROOT}/outside/file\", 0)'", "outside/file"),
        ("perl -e 'rename(\"$ENV{ROOT}/outside/file\", \"$ENV{ROOT}/work/f\")'", "outside/file"),
        ("touch f; perl -e 'rename(\"f\", \"$ENV{ROOT}/outside/g\")'", "outside/g"),
        ("perl -e 'link(\"$ENV{ROOT}/outside/file\", \"f\")'", "outside/file"),
        ("touch f; perl -e 'link(\"f\", \"$ENV{ROOT}/outside/g\")'", "outside/g"),
        ("perl -e 'utime(1, 1, \"$ENV{ROOT}/outside/file\")'", "outside/file"),
    ];
    for (script, path) in table {
        assert_eq!(Scene::new().tried(script), [path], "{script}");
    }
}

#[test]
fn python_has_the_rest() {
    let run = |code: &str| {
        format!("python3 -c 'import os; R = os.environ[\"ROOT\"]; d = os.open(R + \"/outside\", 0); {code}'")
    };
    let table = [
        ("os.open(\"x\", os.O_WRONLY | os.O_CREAT, dir_fd=d)", "outside/x"),
        ("os.rename(\"file\", \"other\", src_dir_fd=d, dst_dir_fd=d)", "outside/file outside/other"),
        ("os.open(R + \"/outside\", os.O_TMPFILE | os.O_RDWR)", "outside"),
        ("os.setxattr(R + \"/outside/file\", b\"user.a\", b\"b\")", "outside/file"),
        ("os.truncate(d, 0)", ""),
        ("os.access(R + \"/outside/file\", os.R_OK)", ""),
        ("os.access(R + \"/outside/file\", os.W_OK)", "outside/file"),
        ("os.open(R + \"/outside/file\", os.O_RDONLY)", ""),
        ("os.open(R + \"/outside/file\", os.O_PATH | os.O_RDWR)", ""),
    ];
    for (code, paths) in table {
        assert_eq!(Scene::new().tried(&run(code)).join(" "), paths, "{code}");
    }
}

#[test]
fn what_the_policy_allows_is_no_attempt() {
    let scene = Scene::new();
    let script = "echo x > a; mkdir d; mv a d; ln d/a b; ln -s /etc l; rm b; touch $ROOT/scratch/t; echo x >/dev/null
        echo x > /proc/self/comm; : 2>/dev/tty; chmod 600 d/a; cat $ROOT/outside/file; ls $ROOT/outside";
    assert_eq!(scene.tried(script), [""; 0]);
}

#[test]
fn a_link_leads_where_it_leads() {
    let scene = Scene::new();
    std::os::unix::fs::symlink("../outside", scene.root.join("work/out")).unwrap();
    std::os::unix::fs::symlink("../work", scene.root.join("outside/in")).unwrap();
    assert_eq!(scene.tried("echo x > out/x; echo x > out/in/y"), ["outside/x"]);
    // Made by the command, to what is not there yet.
    assert_eq!(scene.tried("ln -s ../outside/z z; echo x > z; rm z"), ["outside/z"]);
}

#[test]
fn what_would_fail_anyway_is_no_attempt() {
    let scene = Scene::new();
    let script =
        "mkdir $ROOT/outside; mkdir -p $ROOT/outside; rm -f $ROOT/outside/none; rmdir $ROOT/outside/file $ROOT/outside
        echo x > $ROOT/none/x; echo x > $ROOT/outside; mv none $ROOT/outside/x; set -C; echo x > $ROOT/outside/file";
    assert_eq!(scene.tried(script), [""; 0]);
}

#[test]
fn the_calls_have_their_usual_answers() {
    let scene = Scene::new();
    let script =
        "echo hello > a && cat a && mkdir d && mv a d/b && [ $(cat d/b) = hello ] && rm -r d && ! rm none && exit 7";
    let (status, _) = scene.run(script);
    assert_eq!(status.code(), Some(7));
    assert_eq!(fs::read_dir(scene.root.join("work")).unwrap().count(), 0);
}

#[test]
fn only_so_many_are_kept_each_once() {
    let scene = Scene::new();
    let tried = scene.tried("for i in {1..40}; do for j in 1 2 3; do echo x > $ROOT/outside/$i; done; done");
    let expected: Vec<_> = (1..=MOST).map(|i| format!("outside/{i}")).collect();
    assert_eq!(tried, expected);
}

#[test]
fn an_answer_does_not_wait_when_nothing_is_asked() {
    let scene = Scene::new();
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped());
    let (ours, theirs) = crate::fd::pipe().unwrap();
    command.stdout(Stdio::from(theirs));
    // `start` gives it an empty input, so it reads the pipe by another name.
    let (held, feed) = crate::fd::pipe().unwrap();
    nix::fcntl::fcntl(&held, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    command.arg(format!("/dev/fd/{}", held.as_raw_fd()));
    let (child, mut witness) = scene.start(command);
    for _ in 0..100 {
        assert_eq!(witness.answer(8), State::Waiting);
    }
    drop((held, feed));
    let (status, mut witness) = serve(child, witness);
    assert!(status.success());
    assert_eq!(witness.answer(8), State::Over);
    drop(ours);
}

#[test]
fn tasks_that_are_killed_while_they_wait_hold_nothing_up() {
    let scene = Scene::new();
    let mut command = Command::new("bash");
    // A group of writers, all waiting for an answer.
    command.args(["-c", "for i in {1..20}; do (echo x > $ROOT/outside/$i) & done; wait"]).process_group(0);
    let (mut child, mut witness) = scene.start(command);
    let mut poll = libc::pollfd { fd: witness.fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&mut poll, 1, -1) };
    witness.answer(2);
    // SAFETY: our own child's group, which is unreaped.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    let began = Instant::now();
    child.wait().unwrap();
    while witness.answer(8) == State::Waiting {
        assert!(began.elapsed() < Duration::from_secs(20), "the end is told");
    }
}

#[test]
fn a_command_that_could_hold_the_reader_up_is_not_read() {
    let scene = Scene::new();
    let python =
        |code: &str| format!("python3 -c 'import ctypes; ctypes.CDLL(None).syscall({code})'; echo x > $ROOT/outside/x");
    for number in [libc::SYS_userfaultfd, libc::SYS_io_uring_setup] {
        let (_, witness) = scene.run(&python(&format!("{number}, 0, 0")));
        assert!(witness.testimony().is_none_or(|seen| number == libc::SYS_io_uring_setup && seen.len() == 1));
    }
    let (_, witness) = scene.run(&python("0x7fffffff"));
    assert_eq!(witness.testimony().map(<[_]>::len), Some(1));
}

/// Opens a file of the workspace as often, and prints how long that took.
fn opens(mode: &str, times: usize) -> Command {
    let code = format!(
        "use Time::HiRes \"time\"; my $t = time; \
        for (1..{times}) {{ open(my $f, \"{mode}\", \"a\") or die; close $f }} printf \"%f\", time - $t"
    );
    let mut command = Command::new("perl");
    command.args(["-e", &code]).stdout(Stdio::piped());
    command
}

#[test]
fn only_what_writes_is_announced() {
    let scene = Scene::new();
    fs::write(scene.root.join("work/a"), "").unwrap();
    let announced = |mode| {
        let (child, witness) = scene.start(opens(mode, 1000));
        let (status, witness, announced) = count(child, witness);
        assert!(status.success() && witness.attempts().is_empty());
        announced
    };
    assert_eq!((announced("<"), announced("+<")), (0, 1000));
}

#[test]
#[ignore = "a measurement, made by hand: cargo test --release --lib witness -- --ignored --nocapture"]
fn the_cost_of_an_open() {
    let scene = Scene::new();
    fs::write(scene.root.join("work/a"), "").unwrap();
    let time = |mode: &str, witnessed: bool| -> f64 {
        let mut command = opens(mode, 20_000);
        let output = if witnessed {
            let (mut child, witness) = scene.start(command);
            let mut stdout = File::from(OwnedFd::from(child.stdout.take().unwrap()));
            serve(child, witness);
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        } else {
            let command = command.current_dir(scene.root.join("work"));
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        output.parse().unwrap()
    };
    let best = |mode: &str, witnessed| (0..9).map(|_| time(mode, witnessed)).fold(f64::MAX, f64::min);
    for (name, mode) in [("reading", "<"), ("writing", "+<")] {
        let (with, without) = (best(mode, true), best(mode, false));
        println!("opens for {name} with a sandbox and its witness against without: {:.2}", with / without);
    }
}
