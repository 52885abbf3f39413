//! Commands, and whether the sandbox keeps them from something.

/// What is true of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It is denied something, says so or fails of it.
    Denied,
    /// It is denied something, and goes on as if nothing had been.
    Hidden,
    /// It is denied something that does not matter to it, and fails of something else.
    Incidental,
    /// It is denied nothing, whatever it says.
    Not,
}
use Truth::{Denied, Hidden, Incidental, Not};

impl Truth {
    pub fn words(self) -> &'static str {
        match self {
            Denied => "denied",
            Hidden => "denied, hidden",
            Incidental => "denied, not why it fails",
            Not => "not denied",
        }
    }
}

/// The mode it runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Under {
    Workspace,
    ReadOnly,
}
use Under::{ReadOnly, Workspace};

pub struct Case {
    pub under: Under,
    /// With `$WS`, the workspace, in which it starts, and `$OUT`, a folder outside with `file`, `dir` and `secret`, which is hidden.
    pub command: &'static str,
    pub truth: Truth,
    /// Where it is another one because Landlock knows no right for mode, owner and times.
    pub under_landlock: Option<Truth>,
    /// For an ordinary user, where the file system itself has something against it.
    pub unless_root: Option<Truth>,
    /// Run before, without a sandbox.
    pub before: &'static str,
    /// The programs that it takes.
    pub takes: &'static str,
}

const fn case(truth: Truth, command: &'static str) -> Case {
    Case { under: Workspace, command, truth, under_landlock: None, unless_root: None, before: "", takes: "" }
}

impl Case {
    const fn read_only(self) -> Case {
        Case { under: ReadOnly, ..self }
    }
    const fn under_landlock(self, truth: Truth) -> Case {
        Case { under_landlock: Some(truth), ..self }
    }
    const fn unless_root(self, truth: Truth) -> Case {
        Case { unless_root: Some(truth), ..self }
    }
    const fn after(self, before: &'static str) -> Case {
        Case { before, ..self }
    }
    const fn takes(self, takes: &'static str) -> Case {
        Case { takes, ..self }
    }
}

const REPOSITORY: &str = "git init -q \"$OUT/r\" && echo a > \"$OUT/r/a\"";

pub const CASES: &[Case] = &[
    // Everyday tools, told no.
    case(Denied, "touch $OUT/new"),
    case(Denied, "echo x > $OUT/new"),
    case(Denied, "echo x >> ../outside/file"),
    case(Denied, "cd $OUT && touch new"),
    case(Denied, "cd $OUT/dir; echo x > ../new"),
    case(Denied, "cp a $OUT/").after("touch a"),
    case(Denied, "mv a $OUT/b").after("touch a"),
    case(Denied, "mv $OUT/file ."),
    case(Denied, "rm $OUT/file"),
    case(Denied, "rm -rf $OUT/dir"),
    case(Denied, "rmdir $OUT/dir"),
    case(Denied, "mkdir $OUT/d"),
    case(Denied, "mkdir -p $OUT/d/e/f"),
    case(Denied, "ln -s a $OUT/l"),
    case(Denied, "ln $OUT/file l"),
    case(Denied, "sed -i s/a/b/ $OUT/file"),
    case(Denied, "echo x | tee $OUT/new"),
    case(Denied, "dd if=/dev/zero of=$OUT/new count=1"),
    case(Denied, "truncate -s 0 $OUT/file"),
    case(Denied, "install -m 644 a $OUT/b").after("touch a"),
    case(Denied, "mktemp -p $OUT"),
    case(Denied, "mkfifo $OUT/p"),
    case(Denied, "find $OUT -name file -delete"),
    case(Denied, "chmod 600 $OUT/file").under_landlock(Not),
    case(Denied, "touch -d yesterday $OUT/file").under_landlock(Hidden),
    case(Denied, "echo x > out/new").after("ln -s ../outside out"),
    case(Denied, "tar -xf a.tar -C $OUT").after("touch t && tar -cf a.tar t"),
    case(Denied, "patch $OUT/file < p").after("printf -- '--- a\\n+++ b\\n@@ -1 +1 @@\\n-precious\\n+x\\n' > p").takes("patch"),
    case(Denied, "unzip -qo a.zip -d $OUT").after("touch t && zip -q a.zip t").takes("zip unzip"),
    case(Denied, "curl -sS -o $OUT/new file://$WS/a").after("echo x > a").takes("curl"),
    case(Denied, "cat a > $OUT/file; test -s $OUT/none").after("echo x > a"),
    // Compilers, interpreters, version control, packages.
    case(Denied, "git init -q $OUT/r").takes("git"),
    case(Denied, "cd $OUT/r && git add a").after(REPOSITORY).takes("git"),
    case(Denied, "git clone -q $OUT/r $OUT/s").after(REPOSITORY).takes("git"),
    case(Denied, "git config --file $OUT/config a.b c").takes("git"),
    case(Denied, "gcc -o $OUT/p p.c").after("echo 'int main(void) { return 0; }' > p.c").takes("gcc"),
    case(Denied, "gcc -c -o $OUT/p.o p.c").after("echo 'int main(void) { return 0; }' > p.c").takes("gcc"),
    case(Denied, "make").after("printf 'all:\\n\\techo x > $(OUT)/new\\n' > Makefile").takes("make"),
    case(Denied, "make -s -C $OUT/dir").after("printf 'x:\\n\\ttouch x\\n' > $OUT/dir/Makefile").takes("make"),
    case(Denied, "cargo build -q --offline --manifest-path $OUT/c/Cargo.toml")
        .after("cargo init -q --vcs none --name c $OUT/c").takes("cargo"),
    case(Denied, "cargo init -q --vcs none --name c $OUT/c").takes("cargo"),
    case(Denied, "cd $OUT/n && npm install --offline --no-audit --no-fund ./p")
        .after("mkdir -p $OUT/n/p && echo '{\"name\":\"n\"}' > $OUT/n/package.json && \
                echo '{\"name\":\"p\",\"version\":\"1.0.0\"}' > $OUT/n/p/package.json").takes("npm"),
    case(Denied, "node -e 'fs.writeFileSync(process.env.OUT + \"/new\", \"x\")'").takes("node"),
    case(Denied, "node -e 'fs.promises.mkdir(process.env.OUT + \"/new\")'").takes("node"),
    case(Denied, "python3 -c 'import os; open(os.environ[\"OUT\"] + \"/new\", \"w\")'").takes("python3"),
    case(Denied, "python3 -c 'import os, shutil; shutil.rmtree(os.environ[\"OUT\"])'").takes("python3"),
    case(Denied, "python3 -m venv --without-pip $OUT/venv").takes("python3"),
    case(Denied, "python3 -c 'import os, sqlite3; sqlite3.connect(os.environ[\"OUT\"] + \"/a.db\").execute(\"create table t(a)\")'")
        .takes("python3"),
    case(Denied, "sqlite3 $OUT/a.db 'insert into t values (1)'").after("sqlite3 $OUT/a.db 'create table t(a)'").takes("sqlite3"),
    case(Denied, "perl -e 'open(my $f, \">\", \"$ENV{OUT}/new\") or die \"no: $!\"'").takes("perl"),
    case(Denied, "perl -e 'mkdir \"$ENV{OUT}/new\" or exit 1'").takes("perl"),
    case(Denied, "ssh-keygen -q -N '' -f $OUT/key").takes("ssh-keygen"),
    case(Denied, "HOME=$OUT gpg --list-keys").takes("gpg"),
    case(Denied, "HOME=$OUT git config --global a.b c").takes("git"),
    case(Denied, "gzip $OUT/file").takes("gzip"),
    // The workspace itself, when it may only be read.
    case(Denied, "touch new").read_only(),
    case(Denied, "echo x > a").after("touch a").read_only(),
    case(Denied, "git add a").after("git init -q . && touch a").read_only().takes("git"),
    case(Denied, "git commit -q --allow-empty -m x").after("git init -q . && git config user.name a && git config user.email a@b")
        .read_only().takes("git"),
    case(Denied, "make").after("printf 'x:\\n\\ttouch x\\n' > Makefile").read_only().takes("make"),
    case(Denied, "python3 -m venv --without-pip v").read_only().takes("python3"),
    case(Denied, "cat $OUT/file > a; ls").read_only(),
    case(Denied, "sort -o a a").after("echo x > a").read_only(),
    // What is hidden.
    case(Denied, "cat $OUT/secret/key"),
    case(Denied, "cp $OUT/secret/key ."),
    case(Denied, "python3 -c 'import os; open(os.environ[\"OUT\"] + \"/secret/key\").read()'").takes("python3"),
    // Failures that the command does not speak of.
    case(Denied, "touch $OUT/new 2>/dev/null"),
    case(Denied, "echo x 2>/dev/null > $OUT/new"),
    case(Denied, "mkdir $OUT/d >/dev/null 2>&1 && cd $OUT/d"),
    case(Denied, "python3 -c 'import os, sys\ntry: os.unlink(os.environ[\"OUT\"] + \"/file\")\nexcept OSError: sys.exit(3)'").takes("python3"),
    case(Denied, "touch $OUT/new; echo done"),
    case(Denied, "make -ki").after("printf 'all:\\n\\trm $(OUT)/file\\n' > Makefile").takes("make"),
    case(Denied, "for f in a b c; do cp f $OUT/$f; done; true").after("touch f"),
    // Failures that it hides altogether.
    case(Hidden, "touch $OUT/new 2>/dev/null || true"),
    case(Hidden, "rm -f $OUT/file 2>/dev/null; echo gone"),
    case(Hidden, "cp a $OUT/a >/dev/null 2>&1 || cp a b").after("touch a"),
    case(Hidden, "mkdir $OUT/d 2>/dev/null; exit 0"),
    case(Hidden, "if ! touch $OUT/lock 2>/dev/null; then echo 'busy'; fi"),
    case(Hidden, "python3 -c 'import os\ntry: open(os.environ[\"OUT\"] + \"/new\", \"w\")\nexcept OSError: pass'").takes("python3"),
    case(Hidden, "python3 -c 'import m'").after("echo 'A = 1' > m.py").read_only().takes("python3"),
    case(Hidden, "node -e 'try { fs.rmSync(process.env.OUT + \"/file\") } catch {}'").takes("node"),
    case(Hidden, "(touch $OUT/new) 2>/dev/null & wait"),
    case(Hidden, "touch $OUT/new 2>&1 | cat >/dev/null"),
    case(Hidden, "perl -e 'unlink \"$ENV{OUT}/file\"'").takes("perl"),
    case(Hidden, "HISTFILE=$OUT/history bash -ic 'history -s x; history -w' 2>/dev/null; true"),
    // Failures of something else, beside a denial.
    case(Incidental, "python3 -c 'import m; assert False'").after("echo 'A = 1' > m.py").read_only().takes("python3"),
    case(Incidental, "XDG_CACHE_HOME=$OUT/cache python3 -c 'import os, sys\n\
        try: os.makedirs(os.environ[\"XDG_CACHE_HOME\"])\nexcept OSError: pass\nsys.exit(\"no such target\")'").takes("python3"),
    case(Incidental, "CARGO_HOME=$OUT/cargo cargo build -q --offline")
        .after("cargo init -q --vcs none --name c . && echo 'fn main() { wrong }' > src/main.rs && mkdir $OUT/cargo").takes("cargo"),
    case(Incidental, "HOME=$OUT npm test").after("echo '{\"name\":\"n\",\"scripts\":{\"test\":\"exit 1\"}}' > package.json").takes("npm"),
    case(Incidental, "HOME=$OUT npm test --silent")
        .after("mkdir $OUT/.npm && echo '{\"name\":\"n\",\"scripts\":{\"test\":\"exit 1\"}}' > package.json").takes("npm"),
    case(Incidental, "HOME=$OUT npm run none").after("echo '{\"name\":\"n\"}' > package.json").takes("npm"),
    case(Incidental, "touch $OUT/log 2>/dev/null; gcc p.c").after("echo 'int main( {' > p.c").takes("gcc"),
    // Nothing is denied.
    case(Not, "touch new && mkdir d && mv new d && rm -r d"),
    case(Not, "false"),
    case(Not, "exit 7"),
    case(Not, "cat $OUT/none"),
    case(Not, "ls $OUT/none/none"),
    case(Not, "grep -q nothing $OUT/file"),
    case(Not, "cat $OUT/file && ls $OUT"),
    case(Not, "rm $OUT/none"),
    case(Not, "rm -f $OUT/none"),
    case(Not, "rmdir $OUT"),
    case(Not, "mkdir $OUT/dir"),
    case(Not, "mkdir -p $OUT/dir"),
    case(Not, "mv none $OUT/x"),
    case(Not, "echo x > $OUT/dir"),
    case(Not, "echo x > $OUT/none/x"),
    case(Not, "cp -p $OUT/file ."),
    case(Not, "mktemp && f=$(mktemp) && echo x > $f && cat <<< here"),
    case(Not, "echo x > /dev/null; echo x > /dev/stderr"),
    case(Not, "./script").after("echo true > script"),
    case(Not, "cat a").after("touch a && chmod 0 a"),
    case(Not, "echo x > a").after("touch a && chmod 444 a"),
    case(Not, "cat $OUT/locked").after("touch $OUT/locked && chmod 0 $OUT/locked"),
    case(Not, "gcc p.c").after("echo 'int main( {' > p.c").takes("gcc"),
    case(Not, "python3 -c 'assert False'").takes("python3"),
    case(Not, "node -e 'throw new Error(\"no\")'").takes("node"),
    case(Not, "python3 -c 'raise PermissionError(13, \"Permission denied\", \"/etc/passwd\")'").takes("python3"),
    case(Not, "echo \"touch: cannot touch '$OUT/new': Permission denied\" >&2; exit 1"),
    case(Not, "echo \"touch: cannot touch '$OUT/new': Read-only file system\" >&2"),
    case(Not, "cat build.log >&2; exit 2").after("echo \"cp: cannot create regular file '$OUT/new': Permission denied\" > build.log"),
    case(Not, "git diff --no-index a b").after("echo a > a; echo b > b").takes("git"),
    case(Hidden, "git -C $OUT/r status").after(REPOSITORY).takes("git"),
    case(Not, "git clone -q $OUT/r s").after(REPOSITORY).takes("git"),
    case(Not, "kill -0 1; ulimit -n 99999999"),
    case(Not, "kill -9 $$"),
    case(Not, "python3 -c 'import os; os.setuid(12345); os.setuid(0)'").takes("python3"),
    // What only root could do anyway.
    case(Denied, "touch /etc/dsh-denials").unless_root(Not),
    case(Denied, "echo x > /etc/dsh-denials").unless_root(Not),
    case(Denied, "mkdir /usr/dsh-denials").unless_root(Not),
    case(Hidden, "touch /usr/dsh-denials 2>/dev/null || true").unless_root(Not),
    case(Not, "cat /etc/shadow"),
    // A second lot, which the rules were not made by.
    case(Denied, "exec 3> $OUT/new || exit 9"),
    case(Denied, "cat > $OUT/new <<< text"),
    case(Denied, "set -o pipefail; seq 3 | tee -a $OUT/file | sort"),
    case(Denied, "seq 9 | split -l 3 - $OUT/part"),
    case(Denied, "seq 9 | xargs -I{} cp a $OUT/{}").after("touch a"),
    case(Denied, "awk 'BEGIN { print 1 > ENVIRON[\"OUT\"] \"/new\" }'").takes("awk"),
    case(Denied, "ar rcs $OUT/l.a p.o").after("echo 'int a;' > p.c && gcc -c p.c").takes("gcc ar"),
    case(Denied, "ld -r -o $OUT/q.o p.o").after("echo 'int a;' > p.c && gcc -c p.c").takes("gcc ld"),
    case(Denied, "rustc --crate-type lib -o $OUT/l.rlib l.rs").after("touch l.rs").takes("rustc"),
    case(Denied, "javac -d $OUT/dir A.java").after("echo 'class A {}' > A.java").takes("javac"),
    case(Denied, "openssl rand -out $OUT/new 8").takes("openssl"),
    case(Denied, "xz -k $OUT/file").takes("xz"),
    case(Denied, "ed -s $OUT/file <<< $'1d\\nw\\nq'").takes("ed"),
    case(Denied, "git -C r worktree add -q $OUT/tree")
        .after("git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x").takes("git"),
    case(Denied, "git -C $OUT/r -c user.name=a -c user.email=a@b commit -q --allow-empty -m x").after(REPOSITORY).takes("git"),
    case(Denied, "git mv a $OUT/b; cd $OUT && mv file other").after("git init -q . && touch a && git add a").takes("git"),
    case(Denied, "HOME=$WS npm pack --silent --pack-destination $OUT").after("echo '{\"name\":\"n\",\"version\":\"1.0.0\"}' > package.json").takes("npm"),
    case(Denied, "node -e 'fs.createWriteStream(process.env.OUT + \"/new\").write(\"x\")'").takes("node"),
    case(Denied, "node -e 'fs.promises.rename(\"a\", process.env.OUT + \"/b\").catch(e => { console.log(e.code); process.exit(1) })'")
        .after("touch a").takes("node"),
    case(Denied, "python3 -c 'import os, logging; logging.FileHandler(os.environ[\"OUT\"] + \"/log\")'").takes("python3"),
    case(Denied, "python3 -m zipfile -e a.zip $OUT/z").after("touch t && python3 -m zipfile -c a.zip t").takes("python3"),
    case(Denied, "python3 -c 'import os, pathlib; pathlib.Path(os.environ[\"OUT\"], \"d\", \"e\").mkdir(parents=True)'").takes("python3"),
    case(Denied, "python3 -m unittest t").after("printf 'import os, unittest\\nclass T(unittest.TestCase):\\n def test(self): open(os.environ[\"OUT\"] + \"/x\", \"w\")\\n' > t.py").takes("python3"),
    case(Denied, "bash -c 'bash -c \"touch $OUT/new\"'"),
    case(Denied, "set -e; touch $OUT/new; echo not reached"),
    case(Denied, "(cd $OUT/dir && touch a b c) || exit 4"),
    case(Denied, "mkdir d && git init -q d && touch d/a && rm -r d").read_only().takes("git"),
    case(Denied, "cp /etc/hosts copy").read_only(),
    case(Denied, "diff <(ls) <(ls -a) > out.txt").read_only(),
    case(Denied, "tail -n 1 $OUT/secret/key"),
    case(Denied, "grep -r key $OUT/secret"),
    case(Denied, "[ -w $OUT ] || { echo 'no right to write' >&2; exit 1; }").under_landlock(Not),
    case(Hidden, "command -v none || cp a $OUT/bin 2>/dev/null; true").after("touch a"),
    case(Hidden, "python3 -c 'import contextlib, os\nwith contextlib.suppress(OSError): os.mkdir(os.environ[\"OUT\"] + \"/d\")'").takes("python3"),
    case(Hidden, "node -e 'fs.writeFile(process.env.OUT + \"/x\", \"\", () => {})'").takes("node"),
    case(Hidden, "trap 'rm -f $OUT/file 2>/dev/null' EXIT; echo done"),
    case(Hidden, "git -C $OUT/r log --oneline 2>/dev/null; touch $OUT/r/x 2>/dev/null; true").after(REPOSITORY).takes("git"),
    case(Incidental, "python3 -m unittest t").after("printf 'import unittest\\nclass T(unittest.TestCase):\\n def test(self): self.fail()\\n' > t.py")
        .read_only().takes("python3"),
    case(Incidental, "mkdir $OUT/build 2>/dev/null; make none").after("touch Makefile").takes("make"),
    case(Incidental, "XDG_STATE_HOME=$OUT node -e 'try { fs.mkdirSync(process.env.XDG_STATE_HOME + \"/.tool\") } catch {} process.exit(2)'").takes("node"),
    case(Not, "python3 -m unittest t").after("printf 'import unittest\\nclass T(unittest.TestCase):\\n def test(self): self.fail()\\n' > t.py").takes("python3"),
    case(Not, "git merge none").after("git init -q .").takes("git"),
    case(Not, "git push").after("git init -q .").takes("git"),
    case(Not, "make none").after("touch Makefile").takes("make"),
    case(Not, "rustc l.rs").after("echo 'fn f() {}' > l.rs").takes("rustc"),
    // Java keeps counters in /tmp, which is the host's under Landlock.
    case(Not, "javac A.java").under_landlock(Incidental).after("echo 'class B {' > A.java").takes("javac"),
    case(Not, "node -e 'fs.readFileSync(process.env.OUT + \"/none\")'").takes("node"),
    case(Not, "HOME=$WS npm run none").after("echo '{\"name\":\"n\"}' > package.json").takes("npm"),
    case(Not, "ssh -o BatchMode=yes -o ConnectTimeout=1 -p 1 127.0.0.1 true").takes("ssh"),
    case(Not, "curl -sS http://127.0.0.1:1/").takes("curl"),
    case(Not, "sudo -n true").takes("sudo"),
    case(Not, "ln -s $OUT/file l && cat l && rm l"),
    case(Not, "cp -a $OUT/dir here && rm -r here"),
    case(Not, "mkdir d && chmod 0 d && ls d; rmdir d"),
    case(Not, "grep -rn 'Permission denied' . >&2; exit 1").after("echo \"open $OUT/x: Permission denied\" > log"),
    case(Not, "test -w $OUT/none"),
    case(Not, "python3 -c 'import tempfile; print(tempfile.mkdtemp())'").takes("python3"),
    case(Not, "sleep 0.1 & wait; kill -TERM $$"),
];
