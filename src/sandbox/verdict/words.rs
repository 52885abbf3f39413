//! What a command's stderr says: complaints of missing permission, and the paths they name.
//!
//! Only English ones are known. In another language the kernel's witness has to do without.

use std::path::Path;

/// How much of the text is looked at, from its end.
const MOST_TEXT: usize = 256 << 10;
/// How many complaints are kept, the first ones.
const MOST_COMPLAINTS: usize = 64;
/// How many lines away from a complaint a tool puts the path, when that has a line of its own.
const NEARBY: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// EACCES, EPERM, and what programs say for them.
    NoPermission,
    /// EROFS: about a change, whatever the program.
    ReadOnly,
    /// EXDEV: what becomes of a move or a link across the border of what may be changed.
    OtherDevice,
    /// ENOENT: what a hidden path may look like.
    Missing,
}

/// In lower case.
const WORDS: &[(&str, Kind)] = &[
    ("permission denied", Kind::NoPermission),
    ("operation not permitted", Kind::NoPermission),
    ("read-only file system", Kind::ReadOnly),
    ("invalid cross-device link", Kind::OtherDevice),
    ("eacces", Kind::NoPermission),
    ("eperm", Kind::NoPermission),
    ("erofs", Kind::ReadOnly),
    ("exdev", Kind::OtherDevice),
    ("permissiondenied", Kind::NoPermission),
    ("accessdenied", Kind::NoPermission),
    ("access denied", Kind::NoPermission),
    ("missing write access", Kind::NoPermission),
    ("not writable", Kind::NoPermission),
    ("isn't writable", Kind::NoPermission),
    ("readonlyfilesystem", Kind::ReadOnly),
    ("readonly database", Kind::ReadOnly),
    ("unable to open database", Kind::NoPermission),
    ("no such file or directory", Kind::Missing),
];
/// The names of errors are parts of other words as well, and count only by themselves.
const LONGEST_NAME: usize = 6;

/// A line that complains.
#[derive(Debug)]
pub(super) struct Complaint {
    pub(super) kind: Kind,
    line: String,
    /// The paths that it names, as they stand there.
    pub(super) paths: Vec<String>,
}

impl Complaint {
    pub(super) fn mentions(&self, path: &Path, workdir: &Path) -> bool {
        mentions(&self.line, path, workdir)
    }
}

#[derive(Debug)]
pub(super) struct Text {
    text: String,
    complaints: Vec<Complaint>,
    missing: Vec<Complaint>,
}

impl Text {
    pub(super) fn new(bytes: &[u8]) -> Text {
        let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(MOST_TEXT)..]).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let (mut complaints, mut missing) = (Vec::new(), Vec::new());
        for (index, line) in lines.iter().enumerate() {
            let Some((kind, at)) = find(line) else { continue };
            let list = if kind == Kind::Missing { &mut missing } else { &mut complaints };
            if list.len() < MOST_COMPLAINTS {
                let mut paths = paths(line, at);
                if paths.is_empty() {
                    paths = paths_nearby(&lines, index);
                }
                list.push(Complaint { kind, line: (*line).to_owned(), paths });
            }
        }
        Text { complaints, missing, text }
    }

    /// Those of missing permission.
    pub(super) fn complaints(&self) -> &[Complaint] {
        &self.complaints
    }

    /// Those of something that does not exist.
    pub(super) fn missing(&self) -> &[Complaint] {
        &self.missing
    }

    pub(super) fn is_silent(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Whether the path stands anywhere, whatever is said about it.
    pub(super) fn mentions(&self, path: &Path, workdir: &Path) -> bool {
        mentions(&self.text, path, workdir)
    }
}

/// What a line complains of, and where its words begin.
fn find(line: &str) -> Option<(Kind, usize)> {
    let lower = line.to_ascii_lowercase();
    WORDS.iter().find_map(|(words, kind)| {
        let at = match words.len() <= LONGEST_NAME {
            true => position(&lower, words)?,
            false => lower.find(words)?,
        };
        Some((*kind, at))
    })
}

/// Whether the text has the path as a name of its own: in full, or as seen from the directory where the command started.
fn mentions(text: &str, path: &Path, workdir: &Path) -> bool {
    let seen = path.strip_prefix(workdir).ok().filter(|rest| !rest.as_os_str().is_empty());
    [Some(path), seen].into_iter().flatten().filter_map(Path::to_str).any(|name| position(text, name).is_some())
}

/// Where the words stand with nothing around them that could belong to them.
fn position(text: &str, words: &str) -> Option<usize> {
    let belongs = |letter: char| letter.is_alphanumeric() || matches!(letter, '/' | '_' | '-');
    text.match_indices(words).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        // `./name` is `name`.
        let before =
            before.filter(|letter| *letter != '/' || !text[..*at].ends_with("./") || text[..*at].ends_with("../"));
        let after = text[at + words.len()..].chars().next();
        !before.is_some_and(belongs) && !after.is_some_and(belongs)
    })
}

/// The paths that a line names, whose complaint begins at this place.
fn paths(line: &str, complaint: usize) -> Vec<String> {
    let mut found = quoted(line);
    let before = line[..complaint].trim_end_matches([':', ' ', '(', '[']);
    // `program: file: complaint`. With blanks in it, it is rather a sentence.
    if let Some((_, last)) = before.rsplit_once(": ") {
        if !last.is_empty() && !last.contains(char::is_whitespace) && !last.contains(['\'', '"', '`', '‘', '“']) {
            found.push(last.to_owned());
        }
    }
    for (index, word) in line.split(|letter: char| letter.is_whitespace() || "()=,;<>".contains(letter)).enumerate() {
        // The program that complains, unless nothing but the complaint follows.
        let is_the_speaker = index == 0 && word.ends_with(':') && word.trim_end_matches(':') != before;
        let word = word.trim_matches(|letter: char| "[]{}'\"`‘’“”:.!*".contains(letter) && letter != '.');
        let word = word.trim_end_matches('.');
        if word.contains('/') && !word.contains("://") && !is_the_speaker && !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    }
    found.retain(|path| !path.is_empty() && !path.starts_with('~') && path.len() < 4096);
    found
}

/// What stands in quotes. An apostrophe inside a word is none.
fn quoted(line: &str) -> Vec<String> {
    const PAIRS: &[(char, &[char])] =
        &[('\'', &['\'']), ('"', &['"']), ('`', &['`', '\'']), ('‘', &['’']), ('“', &['”'])];
    let mut found = Vec::new();
    let mut rest = line;
    let mut previous = ' ';
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let closing = PAIRS.iter().find(|(opening, _)| *opening == letter && !previous.is_alphanumeric());
        previous = letter;
        let Some((_, closing)) = closing else { continue };
        if let Some(end) = rest.find(*closing) {
            found.push(rest[..end].to_owned());
            rest = &rest[end..];
            // Past the closing one, which could be taken for an opening one.
            previous = rest.chars().next().unwrap_or(' ');
            rest = &rest[previous.len_utf8().min(rest.len())..];
        }
    }
    found
}

/// The paths of lines around a complaint that names none itself, where it is known how the tools do that.
fn paths_nearby(lines: &[&str], index: usize) -> Vec<String> {
    let near = &lines[index.saturating_sub(NEARBY)..lines.len().min(index + NEARBY + 1)];
    // npm: a line for each property of the error.
    let of_npm = near.iter().filter_map(|line| {
        let (start, path) = line.split_once(" path ")?;
        matches!(start, "npm error" | "npm ERR!").then(|| path.trim().to_owned())
    });
    // Cargo: the reason is indented below what failed.
    let above = &lines[index.saturating_sub(NEARBY)..index];
    let of_cargo = above.iter().rposition(|line| line.trim() == "Caused by:").into_iter().flat_map(|caused| {
        let failed = above[..caused].iter().rev().find(|line| !line.trim().is_empty());
        failed.map(|line| paths(line, line.len())).unwrap_or_default()
    });
    of_npm.chain(of_cargo).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn named(line: &str) -> Vec<String> {
        let text = Text::new(line.as_bytes());
        assert!(!text.complaints().is_empty(), "no complaint: {line}");
        text.complaints().iter().flat_map(|complaint| complaint.paths.clone()).collect()
    }

    #[test]
    fn the_path_is_found_however_programs_write_it() {
        let lines = [
            ("touch: cannot touch '/etc/x': Read-only file system", "/etc/x"),
            ("touch: cannot touch ‘/etc/x’: Permission denied", "/etc/x"),
            ("bash: line 1: /etc/x: Permission denied", "/etc/x"),
            ("sh: 1: cannot create /etc/x: Permission denied", "/etc/x"),
            ("zsh:1: permission denied: /etc/x", "/etc/x"),
            ("tee: out.txt: Permission denied", "out.txt"),
            ("sed: couldn't open temporary file /etc/sedAbC: Permission denied", "/etc/sedAbC"),
            ("mv: cannot move 'a' to '/etc/a b': Read-only file system", "/etc/a b"),
            ("mkdir: cannot create directory ‘sub’: Permission denied", "sub"),
            ("dd: failed to open '/etc/x': Permission denied", "/etc/x"),
            ("tar: ../x/y: Cannot open: Permission denied", "../x/y"),
            ("PermissionError: [Errno 13] Permission denied: '/etc/x'", "/etc/x"),
            ("OSError: [Errno 30] Read-only file system: '/etc/x'", "/etc/x"),
            ("Error: EACCES: permission denied, open '/etc/x'", "/etc/x"),
            ("Error: EROFS: read-only file system, mkdir '/etc/x'", "/etc/x"),
            ("fatal: Unable to create '/r/.git/index.lock': Read-only file system", "/r/.git/index.lock"),
            ("error: could not lock config file /root/.gitconfig: Read-only file system", "/root/.gitconfig"),
            ("/usr/bin/ld: cannot open output file /etc/a.out: Permission denied", "/etc/a.out"),
            ("Fatal error: can't create /etc/x.o: Read-only file system", "/etc/x.o"),
            ("Cannot open /etc/x: Permission denied at -e line 1.", "/etc/x"),
            ("-e:1:in `initialize': Permission denied @ rb_sysopen - /etc/x (Errno::EACCES)", "/etc/x"),
            ("panic: open /etc/x: permission denied", "/etc/x"),
            ("java.io.FileNotFoundException: /etc/x (Permission denied)", "/etc/x"),
            ("java.nio.file.AccessDeniedException: /etc/x", "/etc/x"),
            ("rsync: [Receiver] mkdir \"/etc/x\" failed: Permission denied (13)", "/etc/x"),
            ("Warning: Failed to open the file /etc/x: Permission denied", "/etc/x"),
            ("E: Could not open lock file /var/lib/dpkg/lock - open (13: Permission denied)", "/var/lib/dpkg/lock"),
            ("/etc/x: Permission denied", "/etc/x"),
            ("cp: cannot create regular file './x': Read-only file system", "./x"),
            ("chmod: changing permissions of '/etc/x': Operation not permitted", "/etc/x"),
            ("npm warn Missing write access to /usr/lib/node_modules", "/usr/lib/node_modules"),
            (
                "WARNING: The directory '/root/.cache/pip' or its parent is not writable by the current user.",
                "/root/.cache/pip",
            ),
        ];
        for (line, path) in lines {
            assert!(named(line).iter().any(|found| found == path), "{line}: {:?}", named(line));
        }
    }

    #[test]
    fn the_program_that_complains_is_not_what_it_complains_of() {
        assert_eq!(named("/usr/bin/ld: cannot open output file /w/a.out: Permission denied"), ["/w/a.out"]);
        assert_eq!(named("/bin/sh: 1: cannot create /w/x: Permission denied"), ["/w/x"]);
    }

    #[test]
    fn a_path_in_a_line_of_its_own_is_found_where_the_tool_is_known() {
        let cargo =
            "error: failed to create directory `/w/target`\n\nCaused by:\n  Read-only file system (os error 30)\n";
        assert_eq!(named(cargo), ["/w/target"]);
        let npm = "npm error code EACCES\nnpm error syscall mkdir\nnpm error path /usr/lib/node_modules/x\n";
        assert_eq!(named(npm), ["/usr/lib/node_modules/x"]);
        let python = "  File \"/usr/lib/python3.11/os.py\", line 1, in kill\nPermissionError: [Errno 1] Operation not permitted\n";
        assert_eq!(named(python), [""; 0]);
    }

    #[test]
    fn what_is_no_complaint_is_passed_over() {
        for line in ["experms: the file '/etc/x' is fine", "permissions are denied by '/etc/x'", "exdevelopment /etc/x"]
        {
            assert!(Text::new(line.as_bytes()).complaints().is_empty(), "{line}");
        }
        assert!(Text::new(b" \n").is_silent());
    }

    #[test]
    fn a_mention_is_the_whole_name() {
        let (path, workdir) = (Path::new("/w/sub/a.txt"), Path::new("/w"));
        for text in ["touch: '/w/sub/a.txt' geht nicht", "'sub/a.txt': nein", "./sub/a.txt: nein", "(/w/sub/a.txt)"] {
            assert!(mentions(text, path, workdir), "{text}");
        }
        for text in ["/w/sub/a.txt2", "/x/w/sub/a.txt", "../sub/a.txt", "a.txt", "sub/a.txt/b"] {
            assert!(!mentions(text, path, workdir), "{text}");
        }
    }
}
