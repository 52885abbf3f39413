//! Commands that try to get out of their confinement: nothing outside the policy changes, under each backend, as root and
//! as an unprivileged user.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/confined.rs"]
mod confined;

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use common::*;
use confined::*;
use dsh::{Backend, Mode};

/// Runs the test under each backend, once as we are and once as nobody, in processes of their own.
macro_rules! attacks {
    ($($name:ident => $body:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn under_bubblewrap() {
                in_own_process(test_name!(), || $body(Backend::Bubblewrap));
            }

            #[test]
            fn under_bubblewrap_as_nobody() {
                in_own_process(test_name!(), || {
                    become_nobody();
                    $body(Backend::Bubblewrap)
                });
            }

            #[test]
            fn under_landlock() {
                in_own_process(test_name!(), || $body(Backend::Landlock));
            }

            #[test]
            fn under_landlock_as_nobody() {
                in_own_process(test_name!(), || {
                    become_nobody();
                    $body(Backend::Landlock)
                });
            }
        }
    )*};
}

attacks! {
    files_outside_stay_as_they_are => files_outside;
    nothing_at_all_is_written_when_reading_only => reading_only;
    a_link_does_not_widen_what_may_be_written => links;
    a_link_that_changes_all_the_time_is_not_followed_out => swapping_links;
    the_root_of_other_processes_leads_nowhere => proc_roots;
    mounts_and_namespaces_do_not_help => mounts;
    processes_of_the_host_are_neither_signalled_nor_traced => processes;
    abstract_sockets_of_the_host_are_not_reached => abstract_sockets;
    nothing_is_typed_into_a_terminal_of_the_host => terminals;
    devices_and_the_kernel_stay_as_they_are => devices;
    no_descriptor_of_the_host_is_inherited => descriptors;
    a_workspace_in_a_workspace_opens_only_itself => nested;
}

/// Lets the commands try, each by itself, and compares what is outside.
#[track_caller]
fn attack(place: &Place, commands: &[&str]) {
    let before = snapshot(&place.outside);
    for command in commands {
        let result = place.run(command);
        let facts = result.sandbox.as_ref().unwrap();
        assert_eq!((facts.backend, facts.mode), (Some(place.backend), Mode::WorkspaceWrite), "{command}");
        assert_eq!(snapshot(&place.outside), before, "{command}\n{}{}", text(&result.stdout), text(&result.stderr));
    }
}

fn files_outside(backend: Backend) {
    let place = Place::new(backend);
    attack(
        &place,
        &[
            "echo x > $OUT/file",
            "echo x >> $OUT/file",
            ": > $OUT/file",
            "truncate -s 0 $OUT/file",
            "dd if=/dev/zero of=$OUT/file bs=1 count=1 conv=notrunc",
            "exec 5<>$OUT/file; echo x >&5",
            "touch $OUT/new",
            "mkdir $OUT/new",
            "ln -s / $OUT/new",
            "mkfifo $OUT/new",
            "mknod $OUT/new p",
            "cp /etc/hostname $OUT/new",
            "python3 -c \"import socket,os; socket.socket(socket.AF_UNIX).bind(os.environ['OUT']+'/sock')\"",
            "rm -rf $OUT/file $OUT/dir",
            "mv $OUT/file $OUT/moved",
            "mv $OUT/file $WS/moved",
            "echo x > $WS/own; mv -f $WS/own $OUT/file",
            "echo x > $WS/own; mv $WS/own $OUT/dir/",
            "cd $OUT && echo x > file",
            "cd $WS/../outside && rm file",
            "python3 -c \"import os; os.rename(os.environ['OUT']+'/file', os.environ['WS']+'/x')\"",
        ],
    );
    // What Landlock has no rights for is said to be missing.
    if backend == Backend::Bubblewrap {
        attack(&place, &["chmod 777 $OUT/file", "touch $OUT/file", "chown 65534 $OUT/file $OUT"]);
    } else {
        assert!(place.run(":").sandbox.unwrap().missing.contains(&"metadata"));
    }
    let result = place.run("echo fine > $WS/allowed && cat $WS/allowed");
    assert_eq!(text(&result.stdout), "fine\n", "{}", text(&result.stderr));
}

fn reading_only(backend: Backend) {
    let place = Place::new(backend);
    let before = [&place.workspace, &place.outside].map(|folder| snapshot(folder));
    for command in [
        "echo x > $WS/new",
        "echo x > $OUT/file",
        "mkdir $WS/new",
        "rm $OUT/file",
        "cd $WS; echo x > y",
        "echo x > /dev/null",
    ] {
        let result = place.run_in_mode(Mode::ReadOnly, command);
        assert_eq!(code(&result) == Some(0), command.contains("/dev/null"), "{command}");
        assert_eq!([&place.workspace, &place.outside].map(|folder| snapshot(folder)), before, "{command}");
    }
}

fn links(backend: Backend) {
    let place = Place::new(backend);
    attack(
        &place,
        &[
            "ln -s $OUT $WS/out; echo x > $WS/out/file; rm $WS/out/file; touch $WS/out/new",
            "ln -s $OUT/file $WS/to-file; echo x > $WS/to-file; truncate -s 0 $WS/to-file",
            "ln $OUT/file $WS/hard && echo x > $WS/hard",
            "cd $WS && ln -s ../outside up && cd up && echo x > file",
            "ln -s /proc/self/cwd/../outside $WS/odd; echo x > $WS/odd/file",
            "mkdir $WS/d; cd $WS/d; mv $WS/d $OUT/; echo x > ../outside/file",
        ],
    );
}

/// A folder of the workspace that is a link to the outside every other moment, and a writer that hopes for the moment.
fn swapping_links(backend: Backend) {
    let place = Place::new(backend);
    attack(
        &place,
        &["mkdir $WS/real; ln -s $OUT $WS/link; ln -s real $WS/at
           (for i in $(seq 150); do ln -sfn link $WS/at; ln -sfn real $WS/at; done) &
           for i in $(seq 400); do echo x > $WS/at/file; echo x > $WS/at/new; done 2>/dev/null; wait"],
    );
    assert!(place.workspace.join("real/file").exists(), "the writer has never found the right moment either");
}

fn proc_roots(backend: Backend) {
    let place = Place::new(backend);
    let host = std::process::id();
    let by_host = format!("echo x > /proc/{host}/root$OUT/file; cd /proc/{host}/cwd && echo x > $OUT/file");
    attack(
        &place,
        &[
            "echo x > /proc/self/root$OUT/file",
            "cd /proc/self/root && echo x > .$OUT/file",
            "echo x > /proc/1/root$OUT/file",
            "echo x > /proc/$PPID/root$OUT/file",
            "for p in /proc/[0-9]*; do echo x > $p/root$OUT/file; done 2>/dev/null",
            by_host.as_str(),
        ],
    );
}

fn mounts(backend: Backend) {
    let place = Place::new(backend);
    attack(
        &place,
        &[
            "mount -o remount,rw /; echo x > $OUT/file",
            "mount --bind $OUT $WS; echo x > $WS/file",
            "umount -l /tmp; umount -l $OUT; umount -l $WS; echo x > $OUT/file",
            "unshare -rm sh -c 'mount -o remount,rw /; mount -o remount,rw,bind $OUT; echo x > $OUT/file'",
            "unshare -rm sh -c 'mount --bind $OUT $WS && echo x > $WS/file'",
            "unshare -rmpf --mount-proc sh -c 'echo x > $OUT/file'",
            "chroot / sh -c 'echo x > $OUT/file'",
            "mkdir $WS/up $WS/work $WS/m; unshare -rm mount -t overlay o -olowerdir=$OUT,upperdir=$WS/up,workdir=$WS/work $OUT",
        ],
    );
}

fn processes(backend: Backend) {
    let place = Place::new(backend);
    let mut canary = Canary::new(Command::new("sleep").arg("1000"), true);
    let pid = canary.pid();
    let trace = |request: &str| {
        format!(
            "python3 -c \"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
print('attached' if libc.ptrace({request}, {pid}, 0, 0) == 0 else 'refused')
os.close(os.open('/proc/{pid}/mem', os.O_RDWR))
\""
        )
    };
    for command in [
        format!("kill -9 {pid}"),
        format!("kill -STOP {pid}"),
        trace("16"),
        trace("0x4206"),
        format!("gdb -p {pid} --batch"),
    ] {
        let result = place.run(&command);
        assert!(code(&result) != Some(0), "{command}: {}", text(&result.stdout));
        assert!(!text(&result.stdout).contains("attached"));
        canary.is_untouched();
    }
    // The host itself, and its environment.
    let host = std::process::id();
    let result = place.run(format!("kill -TERM {host}; cat /proc/{host}/environ"));
    assert!(code(&result) != Some(0));
    assert_eq!(text(&result.stdout), "");
}

fn abstract_sockets(backend: Backend) {
    let place = Place::new(backend);
    let name = format!("dsh-attack-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let result = place.run(format!(
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}'); print('connected')\""
    ));
    assert_eq!(text(&result.stdout), "", "{}", text(&result.stderr));
    assert!(listener.accept().is_err());
}

fn terminals(backend: Backend) {
    let place = Place::new(backend);
    let pty = nix::pty::openpty(None, None).unwrap();
    let terminal = nix::unistd::ttyname(&pty.slave).unwrap();
    nix::fcntl::fcntl(&pty.slave, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
    let result = place.run(format!(
        "python3 -c \"
import fcntl, os, termios
for path in ['/dev/tty', '{}', '/dev/console']:
    for mode in [os.O_RDWR, os.O_RDONLY]:
        try:
            fd = os.open(path, mode | os.O_NOCTTY | os.O_NONBLOCK)
            fcntl.ioctl(fd, termios.TIOCSTI, b'x')
            print('typed into', path)
        except OSError as error:
            pass
\"",
        terminal.display()
    ));
    assert_eq!(text(&result.stdout), "", "{}", text(&result.stderr));
    let mut typed = [0; 8];
    let read = std::fs::File::from(pty.slave.try_clone().unwrap()).read(&mut typed);
    assert!(read.is_err(), "{read:?} from {}", pty.slave.as_raw_fd());
}

fn devices(backend: Backend) {
    let place = Place::new(backend);
    let domain = std::fs::read("/proc/sys/kernel/domainname").unwrap();
    for command in [
        "mknod $WS/disk b 8 0",
        "mknod $WS/null c 1 3",
        "mknod $TMPDIR/mem c 1 1",
        "echo attack > /dev/kmsg",
        "echo attack > /proc/sys/kernel/domainname",
        "echo h > /proc/sysrq-trigger",
        "hostname attacked",
    ] {
        let result = place.run(command);
        // It has a name and a /dev of its own.
        let own = command.starts_with("hostname") || command.ends_with("/dev/kmsg");
        let harmless = backend == Backend::Bubblewrap && own;
        assert!(harmless || code(&result) != Some(0), "{command}: {}", text(&result.stderr));
    }
    assert_eq!(std::fs::read("/proc/sys/kernel/domainname").unwrap(), domain);
}

fn descriptors(backend: Backend) {
    let place = Place::new(backend);
    let open = std::fs::File::options().write(true).open(place.outside.join("file")).unwrap();
    // One that the host has forgotten to close on exec.
    nix::fcntl::fcntl(&open, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    let result = place.run("for fd in $(seq 0 99); do [ -e /proc/$$/fd/$fd ] && echo $fd; done");
    assert_eq!(text(&result.stdout), "0\n1\n2\n");
    let fd = open.as_raw_fd();
    attack(&place, &[format!("echo x >&{fd}; echo x > /proc/$PPID/fd/{fd}").as_str()]);
}

fn nested(backend: Backend) {
    let place = Place::new(backend);
    let inner = place.workspace.join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(place.workspace.join("outer"), "kept").unwrap();
    let policy = dsh::SandboxPolicy { workspace: Some(inner.clone()), ..Default::default() };
    let result = place.run_with("echo x > ../outer; echo x > $OUT/file; echo x > mine; cat mine", |request| {
        request.sandbox = Some(policy);
        request.workdir = Some(inner.clone());
    });
    assert_eq!(text(&result.stdout), "x\n");
    assert_eq!(std::fs::read_to_string(place.workspace.join("outer")).unwrap(), "kept");
    assert_eq!(std::fs::read_to_string(place.outside.join("file")).unwrap(), "precious\n");
}
