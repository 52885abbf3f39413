use std::collections::HashMap;
use std::os::unix::ffi::OsStringExt;

use super::*;
use proptest::prelude::*;

fn os(text: &str) -> OsString {
    text.into()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    list.iter().map(|(name, value)| (os(name), os(value))).collect()
}

fn globs(list: &[&str]) -> Vec<OsString> {
    list.iter().map(|glob| os(glob)).collect()
}

fn policy(allow: &[&str], deny: &[&str]) -> Policy {
    Policy { inherit: true, allow: globs(allow), deny: globs(deny) }
}

fn inherited(host: &[(&str, &str)], policy: &Policy) -> Environment {
    layered(pairs(host), policy, Path::new("/w"), &[], &[]).unwrap()
}

fn requested(env: &[(&str, Option<&str>)]) -> Result<Environment> {
    let env: Vec<_> = env.iter().map(|(name, value)| (os(name), value.map(os))).collect();
    layered([], &policy(&[], &[]), Path::new("/w"), &env, &[])
}

fn dsh(name: &str, value: &str) -> Result<Environment> {
    layered([], &policy(&[], &[]), Path::new("/w"), &[], &pairs(&[(name, value)]))
}

fn layered(
    host: impl IntoIterator<Item = (OsString, OsString)>,
    policy: &Policy,
    workdir: &Path,
    env: &[(OsString, Option<OsString>)],
    dsh_env: &[(OsString, OsString)],
) -> Result<Environment> {
    let host: Snapshot = host.into_iter().collect();
    layer(&Arc::new(inherit(host.variables(), policy)), workdir, env, dsh_env)
}

fn get<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    let prefix = format!("{name}=");
    let mut values = environment.entries().filter_map(|entry| entry.to_str().ok()?.strip_prefix(&prefix));
    let value = values.next();
    assert_eq!(values.next(), None, "{name} is there twice");
    value
}

fn names(environment: &Environment) -> Vec<&str> {
    environment.entries().map(|entry| entry.to_str().unwrap().split('=').next().unwrap()).collect()
}

#[test]
fn the_hosts_variables_keep_their_order_and_the_requests_follow_by_name() {
    let host = pairs(&[("Z", "1"), ("PAGER", "less"), ("A", "2"), ("B", "3")]);
    let env = [(os("NEW"), Some(os("4"))), (os("A"), Some(os("5"))), (os("B"), None)];
    let made = layered(host, &policy(&[], &[]), Path::new("/w"), &env, &pairs(&[("DSH_X", "6")])).unwrap();
    assert_eq!(names(&made), ["Z", "NO_COLOR", "TERM", "PAGER", "GIT_PAGER", "A", "DSH_X", "NEW", "PWD"]);
    assert_eq!(get(&made, "A"), Some("5"));
}

#[test]
fn without_inheritance_nothing_of_the_host_is_there() {
    let off = Policy { inherit: false, ..policy(&["*"], &[]) };
    let made = inherited(&[("PATH", "/bin"), ("X_KEY", "s")], &off);
    assert_eq!(names(&made), ["NO_COLOR", "TERM", "PAGER", "GIT_PAGER", "PWD"]);
    assert!(made.scrubbed().is_empty());
}

#[test]
fn credentials_go_by_name_and_by_value_and_are_listed_sorted() {
    let pat = format!("ghp_{}", "a1B2".repeat(9));
    let auth = format!("npm_{}", "c3D4".repeat(9));
    let host = [
        ("PATH", "/bin"),
        ("NPM_CONFIG__AUTH", auth.as_str()),
        ("FOO_API_KEY", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("DATABASE_URL", "scheme://u:pw@h"),
        ("GH_PAT", pat.as_str()),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("HTTPS_PROXY", "http://u:pw@proxy:3128"),
    ];
    let made = inherited(&host, &policy(&[], &[]));
    assert_eq!(
        made.scrubbed()[..],
        globs(&["AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "FOO_API_KEY", "GH_PAT", "NPM_CONFIG__AUTH"])
    );
    assert_eq!(names(&made)[..3], ["PATH", "SSH_AUTH_SOCK", "HTTPS_PROXY"]);
}

#[test]
fn env_allow_brings_back_what_the_credential_rules_and_env_deny_take() {
    let host = [("MY_KEY", "1"), ("DB", "db://u:p@h"), ("AWS_X", "2"), ("AWS_Y", "3"), ("your_KEY", "4")];
    let made = inherited(&host, &policy(&["MY_*", "DB", "AWS_?", "YOUR_*"], &["AWS_*"]));
    assert_eq!(names(&made)[..4], ["MY_KEY", "DB", "AWS_X", "AWS_Y"]);
    assert_eq!(made.scrubbed()[..], [os("your_KEY")]);
}

#[test]
fn env_deny_takes_and_names_variables() {
    let made = inherited(&[("AWS_REGION", "x"), ("aws_region", "x")], &policy(&[], &["AWS_*"]));
    assert_eq!(made.scrubbed()[..], [os("AWS_REGION")]);
    assert_eq!(names(&made)[0], "aws_region");
}

#[test]
fn dsh_names_and_rc_files_go_even_if_allowed_and_are_not_listed() {
    let host = [("DSH_PROCESS_ID", "1"), ("dsh_x", "2"), ("Dsh_TOKEN", "3"), ("BASH_ENV", "/rc"), ("ENV", "/rc")];
    let made = inherited(&host, &policy(&["*"], &["*"]));
    assert_eq!(names(&made), ["NO_COLOR", "TERM", "PAGER", "GIT_PAGER", "PWD"]);
    assert!(made.scrubbed().is_empty());
}

#[test]
fn exported_functions_and_shell_options_go_unless_allowed() {
    let host = [("BASH_FUNC_ls%%", "() { :; }"), ("SHELLOPTS", "errexit"), ("BASHOPTS", "x"), ("PS4", "+ ")];
    let made = inherited(&host, &policy(&[], &[]));
    assert_eq!(names(&made)[0], "PS4");
    assert_eq!(made.scrubbed()[..], globs(&["BASHOPTS", "BASH_FUNC_ls%%", "SHELLOPTS"]));
    let made = inherited(&host, &policy(&["BASH*", "SHELLOPTS"], &[]));
    assert_eq!(names(&made)[..4], ["BASH_FUNC_ls%%", "SHELLOPTS", "BASHOPTS", "PS4"]);
}

#[test]
fn programs_that_ask_for_passwords_go_unless_allowed() {
    let host = [("SSH_ASKPASS", "/x"), ("SUDO_ASKPASS", "/x")];
    let made = inherited(&host, &policy(&["SUDO_*"], &[]));
    assert_eq!(get(&made, "SUDO_ASKPASS"), Some("/x"));
    assert_eq!(made.scrubbed()[..], [os("SSH_ASKPASS")]);
}

#[test]
fn the_terminal_is_dumb_whatever_the_host_has_and_the_request_can_change_it() {
    let host = [("TERM", "xterm"), ("PAGER", "less"), ("GIT_PAGER", "delta"), ("NO_COLOR", "")];
    let made = inherited(&host, &policy(&["TERM"], &["PAGER"]));
    assert_eq!(get(&made, "TERM"), Some("dumb"));
    assert_eq!(get(&made, "PAGER"), Some("cat"));
    assert_eq!(get(&made, "GIT_PAGER"), Some("cat"));
    assert_eq!(get(&made, "NO_COLOR"), Some("1"));
    assert!(made.scrubbed().is_empty());
    let made = requested(&[("TERM", Some("vt100")), ("NO_COLOR", None)]).unwrap();
    assert_eq!(get(&made, "TERM"), Some("vt100"));
    assert_eq!(get(&made, "NO_COLOR"), None);
}

#[test]
fn pwd_is_the_workdir_as_given_and_oldpwd_is_gone() {
    let host = pairs(&[("PWD", "/host"), ("OLDPWD", "/before")]);
    for (workdir, pwd) in [
        ("/t/link", Some("/t/link")),
        ("/", Some("/")),
        ("/t/.hidden/..x", Some("/t/.hidden/..x")),
        ("/t/./x", None),
        ("/t/..", None),
        ("t", None),
        ("", None),
        ("/t\0", None),
    ] {
        let made = layered(host.clone(), &policy(&["*"], &[]), Path::new(workdir), &[], &[]).unwrap();
        assert_eq!(get(&made, "PWD"), pwd, "{workdir}");
        assert_eq!(get(&made, "OLDPWD"), None);
    }
    assert_eq!(get(&requested(&[("PWD", Some("/mine"))]).unwrap(), "PWD"), Some("/mine"));
}

#[test]
fn the_requests_env_removes_overrides_and_its_last_entry_wins() {
    let env = [("A", Some("1")), ("A", None), ("B", None), ("B", Some("2")), ("C", Some("3")), ("C", Some("4"))];
    let made = requested(&env).unwrap();
    assert_eq!((get(&made, "A"), get(&made, "B"), get(&made, "C")), (None, Some("2"), Some("4")));
}

#[test]
fn a_credential_that_the_request_gives_is_passed_and_no_longer_listed() {
    let host = pairs(&[("A_KEY", "old"), ("B_KEY", "old")]);
    let env = [(os("A_KEY"), Some(os("new"))), (os("BASH_ENV"), Some(os("/mine")))];
    let made = layered(host, &policy(&[], &[]), Path::new("/w"), &env, &[]).unwrap();
    assert_eq!(get(&made, "A_KEY"), Some("new"));
    assert_eq!(get(&made, "BASH_ENV"), Some("/mine"));
    assert_eq!(made.scrubbed()[..], [os("B_KEY")]);
}

#[test]
fn of_a_name_that_the_host_has_twice_the_first_counts() {
    let made = inherited(&[("A", "1"), ("A", "2"), ("B", "db://u:p@h"), ("B", "plain")], &policy(&[], &[]));
    assert_eq!(get(&made, "A"), Some("1"));
    assert_eq!(get(&made, "B"), None);
    assert_eq!(made.scrubbed()[..], [os("B")]);
}

#[test]
fn what_no_environment_can_hold_is_not_taken_from_the_host() {
    let made = inherited(&[("", "x"), ("N\0", "x"), ("V", "x\0y"), ("OK", "x")], &policy(&[], &[]));
    assert_eq!(names(&made)[0], "OK");
    assert_eq!(made.entries().count(), 6);
}

#[test]
fn names_and_values_that_are_no_utf8_work() {
    let name = OsString::from_vec(b"N\xff".to_vec());
    let value = OsString::from_vec(b"\xfe".to_vec());
    let host = [(name.clone(), value.clone()), (OsString::from_vec(b"\xff_KEY".to_vec()), value.clone())];
    let made = layered(host.clone(), &policy(&[], &[]), Path::new("/w"), &[], &[]).unwrap();
    assert_eq!(made.entries().next().unwrap().to_bytes(), b"N\xff=\xfe");
    assert_eq!(made.scrubbed()[..], [host[1].0.clone()]);
    let made = layered(host, &policy(&[], &[]), Path::new("/w"), &[(name, None)], &[]).unwrap();
    assert_eq!(names(&made)[0], "NO_COLOR");
}

#[test]
fn a_name_that_can_be_none_is_refused_and_the_value_in_it_is_not_shown() {
    for (name, shown) in [("", r#"env[1] """#), ("A=hunter2", r#"env[1] "A=…""#), ("A\0hunter2", r#"env[1] "A\0…""#)]
    {
        let error = requested(&[("OK", Some("1")), (name, None)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::EnvName, "{name:?}");
        assert!(error.message().contains(shown), "{error}");
        assert!(!error.message().contains("hunter2"), "{error}");
    }
    let error = requested(&[(&format!("{}=", "\n".repeat(500)), None)]).unwrap_err();
    assert!(error.message().len() < 150, "{error}");
}

#[test]
fn dsh_names_are_refused_in_env() {
    for name in ["DSH_X", "dsh_foo", "Dsh_", "DSH_PROCESS_ID"] {
        assert_eq!(requested(&[(name, Some("1"))]).unwrap_err().kind(), ErrorKind::EnvReserved, "{name}");
        assert_eq!(requested(&[(name, None)]).unwrap_err().kind(), ErrorKind::EnvReserved, "{name}");
    }
    assert!(requested(&[("DSH", Some("1")), ("XDSH_Y", Some("1"))]).is_ok());
}

#[test]
fn dsh_env_takes_its_own_namespace_only() {
    for name in ["DSH_A", "DSH_A_1", "DSH_PROCESS_IDS"] {
        assert_eq!(get(&dsh(name, "1").unwrap(), name), Some("1"));
    }
    for name in ["", "A", "DSH_", "DSH_1", "DSH__A", "dsh_A", "DSH_a", "DSH_Aa", "DSH_A=1", "DSH_A\0", "DSH_É"] {
        assert_eq!(dsh(name, "1").unwrap_err().kind(), ErrorKind::EnvName, "{name:?}");
    }
    assert_eq!(dsh("DSH_PROCESS_ID", "1").unwrap_err().kind(), ErrorKind::EnvReserved);
}

#[test]
fn a_value_with_nul_is_refused_without_being_shown() {
    for error in [requested(&[("MY_KEY", Some("hunter2\0"))]), dsh("DSH_X", "hunter2\0")] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("env \"") && !error.message().contains("hunter2"), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_variable_longer_than_linux_takes_is_refused_wherever_it_is_from() {
    let fits = "x".repeat(131_071 - "BIG=".len());
    assert!(requested(&[("BIG", Some(&fits))]).is_ok());
    let long = format!("{fits}x");
    let dsh_long = format!("DSH_BIG{}", &long["DSH_BIG".len()..]);
    for error in [
        requested(&[("BIG", Some(&long))]),
        dsh("DSH_BIG", &dsh_long),
        layered(pairs(&[("BIG", &long)]), &policy(&[], &[]), Path::new("/w"), &[], &[]),
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::EnvTooBig);
        assert!(error.message().contains("BIG\" takes 13107"), "{error}");
        assert!(error.message().contains("131071") && !error.message().contains("xxx"), "{error}");
    }
}

#[test]
fn the_error_about_the_whole_names_the_largest_and_no_value() {
    let big = "v".repeat(1_000);
    let made = requested(&[("S", Some("v")), ("L\n", Some(&big)), ("M", Some(&big[..500]))]).unwrap();
    assert!(made.largest(2).eq([(OsStr::new("L\n"), 1_003), (OsStr::new("M"), 502)]));
    let error = made.too_big(libc::E2BIG);
    assert_eq!((error.kind(), error.stage()), (ErrorKind::EnvTooBig, Stage::Exec));
    assert_eq!(error.errno(), Some(libc::E2BIG));
    assert!(error.message().contains(r#""L\n" (1003 bytes), "M" (502 bytes), ""#), "{error}");
    let total: usize = made.entries().map(|entry| entry.to_bytes_with_nul().len()).sum();
    assert!(error.message().contains(&format!("8 variables take {total} bytes")), "{error}");
    assert!(!error.message().contains("vvv"), "{error}");
}

#[test]
fn debug_output_names_what_was_left_out_and_shows_no_value() {
    let made = inherited(&[("A_KEY", "hunter2"), ("B", "hunter3")], &policy(&[], &[]));
    let text = format!("{made:?}");
    assert!(text.contains("A_KEY") && text.contains("entries: 6") && !text.contains("hunter"), "{text}");
}

#[test]
fn a_glob_that_matches_nothing_is_refused_by_its_place() {
    assert!(policy(&["A*", "?"], &["*"]).validate().is_ok());
    for (bad, shown) in [
        (policy(&["A", "B", ""], &[]), r#"env_allow[2] """#),
        (policy(&[], &["A_KEY=hunter2"]), r#"env_deny[0] "A_KEY=…""#),
        (policy(&["*"], &["x\0"]), r#"env_deny[0] "x\0""#),
    ] {
        let error = bad.validate().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().starts_with(shown), "{error}");
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Da-d_]{1,3}",
        "[Dd][Ss][Hh]_[A-Z_]{0,3}",
        "[A-C]_(KEY|TOKEN|KEYS?)",
        proptest::sample::select(vec![
            "PWD",
            "OLDPWD",
            "TERM",
            "PAGER",
            "ENV",
            "BASH_ENV",
            "SHELLOPTS",
            "BASH_FUNC_a%%"
        ])
        .prop_map(str::to_owned),
    ]
}

fn any_host() -> impl Strategy<Value = Vec<(OsString, OsString)>> {
    let value = prop_oneof!["[a-z=:]{0,4}", Just("db://u:p@h".to_owned())];
    proptest::collection::vec((any_name().prop_map_into(), value.prop_map_into()), 0..12)
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let globs = || proptest::collection::vec("[A-D*?_]{1,3}".prop_map_into(), 0..3);
    (any::<bool>(), globs(), globs()).prop_map(|(inherit, allow, deny)| Policy { inherit, allow, deny })
}

fn any_env() -> impl Strategy<Value = Vec<(OsString, Option<OsString>)>> {
    let name = any_name().prop_filter("reserved", |name| !reserved(name.as_bytes())).prop_map_into();
    proptest::collection::vec((name, proptest::option::of("[a-z=]{0,4}".prop_map_into())), 0..8)
}

proptest! {
    #[test]
    fn no_dsh_name_of_the_host_survives(host in any_host(), policy in any_policy(), env in any_env()) {
        let made = layered(host, &policy, Path::new("/w"), &env, &[]).unwrap();
        prop_assert!(!made.entries().any(|entry| reserved(entry.to_bytes())));
    }

    #[test]
    fn the_requests_env_always_wins(host in any_host(), policy in any_policy(), env in any_env()) {
        let made = layered(host, &policy, Path::new("/w"), &env, &[]).unwrap();
        let last: HashMap<_, _> = env.into_iter().collect();
        for (name, value) in last {
            let (name, value) = (name.to_str().unwrap(), value.as_deref().map(|value| value.to_str().unwrap()));
            prop_assert_eq!(get(&made, name), value, "{}", name);
        }
    }

    #[test]
    fn no_scrubbed_name_is_also_an_entry(host in any_host(), policy in any_policy(), env in any_env()) {
        let made = layered(host, &policy, Path::new("/w"), &env, &[]).unwrap();
        prop_assert!(made.scrubbed().is_sorted());
        for name in made.scrubbed().iter() {
            prop_assert_eq!(get(&made, name.to_str().unwrap()), None);
        }
    }
}

#[test]
fn the_cache_follows_the_hosts_environment_and_the_policy() {
    let cache = Cache::default();
    let entries = |host: &[(&str, &str)], policy: &Policy| {
        let now: Snapshot = pairs(host).into_iter().collect();
        let look = |last: &Snapshot| (now != *last).then_some(now);
        let made = layer(&cache.inherited(look, policy), Path::new("/w"), &[], &[]).unwrap();
        get(&made, "A").map(str::to_owned)
    };
    let open = policy(&[], &[]);
    assert_eq!(entries(&[("A", "1")], &open).as_deref(), Some("1"));
    assert_eq!(entries(&[("A", "1")], &open).as_deref(), Some("1"));
    assert_eq!(entries(&[("A", "2")], &open).as_deref(), Some("2"));
    assert_eq!(entries(&[("A", "2")], &policy(&[], &["A"])), None);
    assert_eq!(entries(&[], &open), None);
}
