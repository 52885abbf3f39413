//! Commands of any length and content mean the same.

mod common;

use common::*;
use dsh::{ErrorKind, Executor, Request, RunResult, Stage};

/// The longest argument that Linux takes.
const LIMIT: usize = 131_071;

/// A command padded to a length with a comment line at its beginning.
fn padded(command: &str, len: usize) -> Vec<u8> {
    let filler = len.checked_sub(command.len() + 2).expect("room for a comment");
    format!("#{}\n{command}", "x".repeat(filler)).into_bytes()
}

fn run(executor: &Executor, command: Vec<u8>) -> RunResult {
    in_time(|| executor.run(Request::new(command)).unwrap())
}

#[test]
fn a_command_of_any_length_runs() {
    let executor = executor();
    for len in [LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 2, 300_000, 3_000_000] {
        let mut command = b": ".to_vec();
        command.resize(len - 8, b'x');
        command.extend(b"\nexit 42");
        assert_eq!(command.len(), len);
        let result = run(&executor, command.clone());
        assert_eq!((code(&result), text(&result.stderr).as_str()), (Some(42), ""), "{len} bytes");
        let process = executor.start(Request::new(command)).unwrap();
        in_time(|| process.wait(None).unwrap());
        assert_eq!(process.info().unwrap().outcome.unwrap().exit, dsh::Exit::Code(42));
    }
}

#[test]
fn a_command_means_the_same_above_the_limit_as_below() {
    let executor = executor();
    for command in [
        "echo \"$0 $- $# $? $*\"",
        "echo $LINENO; echo $LINENO",
        "echo ${#BASH_EXECUTION_STRING} | sed s/131072/131071/",
        "readlink /proc/self/fd/0; cat; read x; echo $?",
        "ls /proc/self/fd | wc -l",
        "for fd in /proc/$$/fd/*; do echo ${fd##*/}; done",
        "set | grep -c ^IFS; printf %q \"$IFS\"; echo ${REPLY-unset} ${BASH_ARGV0-none} $SHLVL $BASH_SUBSHELL",
        "return 5 2>/dev/null; echo $?",
        "f() { echo $FUNCNAME $LINENO ${#BASH_SOURCE[@]}; }; f; caller; echo ${BASH_SOURCE[*]-none}",
        "set -e; false; echo not reached",
        "set -u; echo $nothing_of_this_name; echo not reached",
        "trap 'echo bye $?' EXIT; exit 9",
        "shopt -p expand_aliases; echo $BASHOPTS $SHELLOPTS",
        "exec bash -c 'echo replaced'",
        "exit 300",
        "kill -TERM $$",
        "echo $(( $$ == BASHPID )) $PPID | tr -d 0-9",
        "cat <<'END'\n$x `y` \\\nEND\necho after",
        "printf '%s\\n' 'it'\\''s' \"a  b\" *nothing* ~root",
        "env | grep -v -e ^DSH_PROCESS_ID= -e ^_= | sort | md5sum",
        "history | wc -l; jobs; hash -r; type -t cd",
        "echo 'trailing backslash' \\",
    ] {
        let [below, above] = [LIMIT, LIMIT + 1].map(|len| run(&executor, padded(command, len)));
        assert_eq!(text(&below.stdout), text(&above.stdout), "stdout of {command}");
        assert_eq!(below.outcome.exit, above.outcome.exit, "end of {command}");
        assert_eq!(below.stderr.total > 0, above.stderr.total > 0, "{command}: {below:?}");
    }
}

#[test]
fn trailing_newlines_and_backslashes_of_a_long_command_are_kept() {
    let executor = executor();
    for end in ["echo x\\", "echo x\\\n", "echo x\n\n\n", "echo 'x\n\n'", "echo x\\\\", "cat <<E\nx\nE", "  echo x  \t"]
    {
        let [below, above] = [LIMIT, LIMIT + 1].map(|len| run(&executor, padded(end, len)));
        assert!(below.stdout.total > 0, "{end:?}");
        assert_eq!(below.stdout.bytes, above.stdout.bytes, "{end:?}");
    }
}

#[test]
fn a_long_command_with_heredocs_is_no_different() {
    let line = "a line of text with $HOME, `backticks` and \\ in it\n";
    let body = line.repeat(6_000);
    let command = format!("cat <<'END'\n{body}END\nwc -c <<'END'\n{body}END\nexit 3");
    assert!(command.len() > 600_000);
    let executor = executor_with(|config| config.max_output_bytes = 1 << 20);
    let result = run(&executor, command.into_bytes());
    assert!(text(&result.stdout) == format!("{body}{}\n", body.len()));
    assert_eq!(code(&result), Some(3));
}

#[test]
fn a_long_command_of_arbitrary_bytes_arrives_unchanged() {
    let executor = executor_with(|config| config.max_output_bytes = 1 << 20);
    let odd: Vec<u8> = (1..=255u8).filter(|byte| *byte != b'\'').collect();
    for times in [10, 1_000] {
        let body = odd.repeat(times);
        let command = [b"printf %s '".as_slice(), &body, b"'"].concat();
        let result = run(&executor, command);
        assert!(result.stdout.bytes == body, "{} of {} bytes", result.stdout.bytes.len(), body.len());
    }
}

#[test]
fn a_long_command_can_be_given_input() {
    let command = padded("cat; echo $?", LIMIT + 1);
    let with_input = request(command, |request| request.stdin = Some(b"input\n".to_vec()));
    assert_eq!(text(&in_time(|| executor().run(with_input).unwrap()).stdout), "input\n0\n");
}

#[test]
fn a_syntax_error_is_the_commands_own_failure_in_a_long_command_too() {
    let executor = executor();
    for len in [LIMIT, LIMIT + 1] {
        let result = run(&executor, padded("if then (", len));
        assert!(matches!(code(&result), Some(1 | 2)) && result.stderr.total > 0);
    }
}

#[test]
fn a_command_with_a_nul_byte_is_refused_with_its_offset() {
    let error = executor().run(Request::new(*b"echo a\0b")).unwrap_err();
    assert_eq!((error.kind(), error.stage()), (ErrorKind::CommandNul, Stage::Argument));
    assert!(error.message().contains('6'), "{error}");
}

#[test]
fn an_empty_command_succeeds() {
    for command in ["", " ", "\n", "# only a comment"] {
        let result = executor().run(command).unwrap();
        assert_eq!((code(&result), result.stdout.total, result.stderr.total), (Some(0), 0, 0));
    }
}

#[test]
fn a_command_that_is_not_there_is_the_shells_answer_and_no_error() {
    let executor = executor();
    assert_eq!(code(&executor.run("no-such-command-here").unwrap()), Some(127));
    assert_eq!(code(&executor.run("/etc/passwd").unwrap()), Some(126));
}

#[test]
fn an_environment_that_is_too_big_is_an_error_that_names_the_largest_variable() {
    let executor = executor();
    let big = |request: &mut Request| {
        let value = |len: usize| Some("v".repeat(len).into());
        request.env.extend((0..30).map(|i| (format!("MANY_{i}").into(), value(100_000))));
        request.env.push(("THE_LARGEST".into(), value(120_000)));
    };
    for error in [
        executor.run(request("true", big)).unwrap_err(),
        executor.start(request("true", big)).map(|_| ()).unwrap_err(),
        executor
            .run(request("true", |request| {
                request.env = vec![("THE_LARGEST".into(), Some("v".repeat(3_000_000).into()))]
            }))
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::EnvTooBig);
        assert!(error.message().contains("THE_LARGEST") && !error.message().contains("vvv"), "{error}");
        assert!(error.message().len() < 2_000);
    }
    assert_eq!(code(&executor.run("exit 4").unwrap()), Some(4));
}
