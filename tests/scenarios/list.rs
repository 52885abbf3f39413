//! The form of scenario lists (README.md): values, quoted bytes, what a list expects, and how a driver's text differs.

/// A value as the bytes that it stands for, before `@DIR@` is replaced.
pub fn unescaped(value: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => escape(&mut rest).unwrap_or_else(|| panic!("an unknown escape in {value}")),
            _ => byte,
        });
    }
    bytes
}

/// The byte that an escape stands for, after its backslash.
fn escape(rest: &mut std::str::Bytes) -> Option<u8> {
    match rest.next()? {
        b'x' => {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
        }
        letter => ESCAPES.iter().find(|(name, _)| *name == letter).map(|(_, meant)| *meant),
    }
}

const ESCAPES: [(u8, u8); 5] = [(b'n', b'\n'), (b't', b'\t'), (b'r', b'\r'), (b'\\', b'\\'), (b'"', b'"')];

/// Bytes as drivers print them.
pub fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match ESCAPES.iter().find(|(_, meant)| meant == byte) {
            Some((name, _)) => text.extend(['\\', char::from(*name)]),
            None if (0x20..0x7f).contains(byte) => text.push(char::from(*byte)),
            None => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

/// The first word of a line, and what comes after the space behind it.
pub fn split(line: &str) -> (&str, &str) {
    line.split_once(' ').unwrap_or((line, ""))
}

/// Whether a driver has nothing to do with a line.
pub fn says_nothing(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// The lines that a driver is to print for a list.
pub fn expected(list: &str) -> Vec<&str> {
    let prepares = |line: &str| matches!(split(line).0, "set" | "fill" | "config" | "file");
    list.lines().filter(|line| !says_nothing(line) && !prepares(line)).collect()
}

/// Where two texts part: the case, and both texts from there on to its end. `None` when they are equal.
pub fn difference(expected: &[&str], printed: &[&str]) -> Option<String> {
    let at = (0..expected.len().max(printed.len())).find(|at| expected.get(*at) != printed.get(*at))?;
    let case = expected[..at.min(expected.len())].iter().rfind(|line| line.starts_with("case ")).unwrap_or(&"no case");
    let show = |lines: &[&str]| {
        let lines = lines.iter().skip(at).take_while(|line| !line.starts_with("case "));
        lines.map(|line| format!("    {line}\n")).collect::<String>()
    };
    Some(format!("{case}\n  is to go on with\n{}  and went on with\n{}", show(expected), show(printed)))
}
