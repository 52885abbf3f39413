//! Generates the C header from `src/capi` as it is now, one section per file. The one that is committed,
//! `include/dsh.h`, is compared with it by a test; a build never writes into the source tree.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// In the order in which the header tells them: what is used comes before what uses it.
const NOUNS: [&str; 15] = [
    "version", "status", "error", "sandbox", "config", "executor", "cancel", "request", "spec", "outcome", "result",
    "process", "facts", "output", "event",
];

pub fn generate() -> Result<(), Box<dyn Error>> {
    for input in ["build/header.rs", "cbindgen.toml", "src/capi"] {
        println!("cargo:rerun-if-changed={input}");
    }
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
    let mut header = config.header.take().unwrap_or_default().trim_start().to_owned();
    let trailer = config.trailer.take().unwrap_or_default();
    for noun in NOUNS {
        header += &section(&root.join("src/capi").join(noun).with_extension("rs"), &config)?;
    }
    header += trailer.trim_end();
    header.push('\n');
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("dsh.h"), header)?;
    Ok(())
}

/// What one file declares, under the first line of its own description.
fn section(source: &Path, config: &cbindgen::Config) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(source)?;
    let title = text.lines().next().and_then(|line| line.strip_prefix("//! ")).ok_or("a file without description")?;
    let mut declarations = Vec::new();
    cbindgen::Builder::new().with_config(config.clone()).with_src(source).generate()?.write(&mut declarations);
    let declarations = String::from_utf8(declarations)?;
    let rule = "-".repeat(112usize.saturating_sub(title.len()));
    Ok(format!("\n/* {title} {rule} */\n\n{}\n", declarations.trim()))
}
