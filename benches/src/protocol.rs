//! What the conductor says to a peer and what the peer answers: lines of fields, see benches/README.md.

use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Keep,
    Spill,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// `bytes`: what the command writes to stdout, so that a peer that loses some is found out.
    Run {
        mode: Mode,
        command: String,
        bytes: u64,
    },
    Parallel {
        callers: u32,
        command: String,
    },
    Many,
    Kill,
    FirstByte {
        chatty: u32,
    },
    Wakeup {
        pipes: u32,
    },
    /// No line: a whole process, which the conductor times.
    First,
}

impl Request {
    pub fn line(&self, count: u32) -> String {
        match self {
            Request::Run { mode, command, .. } => {
                let mode = if *mode == Mode::Keep { "keep" } else { "spill" };
                format!("run\t{count}\t{mode}\t{command}")
            }
            Request::Parallel { callers, command } => format!("parallel\t{callers}\t{count}\t{command}"),
            Request::Many => format!("many\t{count}"),
            Request::Kill => format!("kill\t{count}"),
            Request::FirstByte { chatty } => format!("first_byte\t{count}\t{chatty}"),
            Request::Wakeup { pipes } => format!("wakeup\t{pipes}\t{count}"),
            Request::First => "first".to_owned(),
        }
    }
}

/// What came back, by name. Everything is a list; most have one element.
#[derive(Debug, Default, PartialEq)]
pub struct Answer(pub HashMap<String, Vec<i64>>);

#[derive(Debug, PartialEq)]
pub enum Trouble {
    /// The peer has no such thing.
    Unsupported,
    /// What it said was wrong, or what is wrong with what it said.
    Error(String),
}

impl Answer {
    pub fn parse(line: &str) -> Result<Answer, Trouble> {
        if line == "unsupported" {
            return Err(Trouble::Unsupported);
        }
        if let Some(text) = line.strip_prefix("error") {
            return Err(Trouble::Error(text.trim().to_owned()));
        }
        let mut fields = HashMap::new();
        for field in line.split('\t') {
            let parsed = field.split_once('=').and_then(|(key, list)| {
                let list: Result<Vec<i64>, _> = list.split(',').map(str::parse).collect();
                Some((key.to_owned(), list.ok()?))
            });
            let (key, list) = parsed.ok_or_else(|| Trouble::Error(format!("not an answer: {line:?}")))?;
            fields.insert(key, list);
        }
        Ok(Answer(fields))
    }

    pub fn list(&self, key: &str) -> Result<&[i64], Trouble> {
        self.0.get(key).map(Vec::as_slice).ok_or_else(|| Trouble::Error(format!("no {key} in the answer")))
    }

    pub fn one(&self, key: &str) -> Result<f64, Trouble> {
        match self.list(key)? {
            [value] => Ok(*value as f64),
            list => Err(Trouble::Error(format!("{} values of {key}, not one", list.len()))),
        }
    }

    /// A value for each of `count` calls.
    pub fn each(&self, key: &str, count: u32) -> Result<Vec<f64>, Trouble> {
        let list = self.list(key)?;
        if list.len() != count as usize {
            return Err(Trouble::Error(format!("{} values of {key}, not {count}", list.len())));
        }
        Ok(list.iter().map(|&value| value as f64).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_fields_separated_by_tabs() {
        let run = Request::Run { mode: Mode::Spill, command: "seq 3".into(), bytes: 6 };
        assert_eq!(run.line(20), "run\t20\tspill\tseq 3");
        let parallel = Request::Parallel { callers: 8, command: "true".into() };
        assert_eq!(parallel.line(100), "parallel\t8\t100\ttrue");
        assert_eq!(Request::FirstByte { chatty: 2 }.line(5), "first_byte\t5\t2");
        assert_eq!(Request::Wakeup { pipes: 8 }.line(300), "wakeup\t8\t300");
    }

    #[test]
    fn an_answer_is_numbers_by_name() {
        let answer = Answer::parse("wall_us=3,1,2\tcpu_us=40\tbytes=0").unwrap();
        assert_eq!(answer.each("wall_us", 3).unwrap(), [3.0, 1.0, 2.0]);
        assert_eq!(answer.one("cpu_us").unwrap(), 40.0);
        assert!(answer.each("wall_us", 2).is_err());
        assert!(answer.one("wall_us").is_err());
        assert!(answer.one("idle_us").is_err());
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        assert_eq!(Answer::parse("unsupported"), Err(Trouble::Unsupported));
        assert_eq!(Answer::parse("error\tno bash"), Err(Trouble::Error("no bash".into())));
        for line in ["", "hello", "wall_us=", "wall_us=1.5", "wall_us=1\t"] {
            assert!(matches!(Answer::parse(line), Err(Trouble::Error(_))), "{line:?}");
        }
    }
}
