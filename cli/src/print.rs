//! Standard output and error: a reader that leaves early is no error, no text out of a file commands the terminal, and of several processes one
//! speaks.

use diffclf_run::company::leads;
use diffclf_run::{Error, Result};
use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Writes text to standard output. A closed pipe (`| head`) ends the output, not the command.
pub fn print(text: &str) -> Result<()> {
    if !leads() {
        return Ok(());
    }
    let text = plain(text);
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => Err(Error::Write {
            path: PathBuf::from("standard output"),
            source,
        }),
        _ => Ok(()),
    }
}

/// Writes a line to standard error. Nobody may be listening; the work goes on.
pub fn note(text: &str) {
    if !leads() {
        return;
    }
    let _ = writeln!(std::io::stderr(), "{}", plain(text));
}

/// The text with every character that a terminal takes as a command, or that turns the direction of writing, made visible. Names and
/// settings in model files are other people's words.
pub fn plain(text: &str) -> Cow<'_, str> {
    let commands = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(commands) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if commands(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(plain("a\tb\nß ± √"), "a\tb\nß ± √");
        assert_eq!(
            plain("\u{1b}[2Jx\u{9b}31m\u{7}\r\u{202e}"),
            "\\u{1b}[2Jx\\u{9b}31m\\u{7}\\u{d}\\u{202e}"
        );
    }
}
