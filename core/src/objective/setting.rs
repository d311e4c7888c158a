//! Settings of objectives: what stands between the parentheses of `name(setting=value)`.

use crate::{Error, Result};

/// A setting that is read from text and written back.
pub trait Setting {
    /// Takes the value that `text` says; `name` is the setting's, for the error.
    fn read(&mut self, name: &'static str, text: &str) -> Result<()>;

    /// The text that gives this value.
    fn text(&self) -> String;
}

/// Settings by name, for reading and writing.
pub type SettingList<'a> = Vec<(&'static str, &'a mut dyn Setting)>;

/// A choice between a few words.
pub trait Words: Copy + PartialEq + 'static {
    /// Words and what they mean; every value has one.
    const WORDS: &'static [(&'static str, Self)];
}

impl Words for bool {
    const WORDS: &'static [(&'static str, bool)] = &[("no", false), ("yes", true)];
}

impl<T: Words> Setting for T {
    fn read(&mut self, name: &'static str, text: &str) -> Result<()> {
        let Some((_, meaning)) = T::WORDS.iter().find(|(word, _)| *word == text) else {
            let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
            return Err(wrong(name, text, &format!("one of {}", words.join(", "))));
        };
        *self = *meaning;
        Ok(())
    }

    fn text(&self) -> String {
        let word = T::WORDS.iter().find(|(_, meaning)| meaning == self);
        word.map_or(String::new(), |(word, _)| (*word).into())
    }
}

/// A positive number.
impl Setting for f64 {
    fn read(&mut self, name: &'static str, text: &str) -> Result<()> {
        *self = match text.parse() {
            Ok(number) if number > 0.0 && f64::is_finite(number) => number,
            _ => return Err(wrong(name, text, "a positive number")),
        };
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A number of things, at least one.
impl Setting for u32 {
    fn read(&mut self, name: &'static str, text: &str) -> Result<()> {
        *self = match text.parse() {
            Ok(count) if count > 0 => count,
            _ => return Err(wrong(name, text, "a whole number, at least 1")),
        };
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

fn wrong(name: &'static str, text: &str, expected: &str) -> Error {
    Error::Value {
        name,
        found: format!("{text:?}"),
        expected: expected.into(),
    }
}
