//! `Words`: a message in which settings are named by their keys, so that each skin writes them as its users do.
//!
//! A command line writes `--held-out 0.1`, a function call `held_out=0.1`; without a skin it is `held_out = 0.1`. The names are parts of
//! the message and not marks in its text, so that nothing in a path or a file can be taken for one.

use std::fmt::{self, Display};

/// A setting that a message names, with the value it should get, where one is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its key: of [`Settings`](crate::settings::Settings), or an argument of what was asked for (`force`, `output`, `threads`).
    pub name: &'static str,
    /// The value that is proposed.
    pub value: Option<String>,
}

impl Setting {
    /// The setting as such.
    pub fn new(name: &'static str) -> Self {
        Self { name, value: None }
    }

    /// The setting with a value.
    pub fn to(name: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            value: Some(value.into()),
        }
    }

    /// As it stands in a configuration file.
    fn bare(&self) -> String {
        match &self.value {
            Some(value) => format!("{} = {value}", self.name),
            None => self.name.into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Setting(Setting),
}

/// A message. It is put together by the macro [`words!`](crate::words!).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    parts: Vec<Part>,
}

impl Words {
    /// The pieces, one after the other.
    pub fn of(pieces: &[&dyn Piece]) -> Self {
        let mut words = Self::default();
        pieces.iter().for_each(|piece| piece.add_to(&mut words));
        words
    }

    /// The message with every setting written as `skin` writes it.
    pub fn told(&self, skin: &dyn Fn(&Setting) -> String) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Setting(setting) => skin(setting),
            })
            .collect()
    }

    /// The settings it names, in order.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Setting(setting) => Some(setting),
        })
    }
}

/// Settings by their keys.
impl Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&Setting::bare))
    }
}

/// What a message is made of: text, whatever can be shown, and settings.
pub trait Piece {
    /// Appends it.
    fn add_to(&self, words: &mut Words);
}

impl<T: Display> Piece for T {
    fn add_to(&self, words: &mut Words) {
        words.parts.push(Part::Text(self.to_string()));
    }
}

impl Piece for Setting {
    fn add_to(&self, words: &mut Words) {
        words.parts.push(Part::Setting(self.clone()));
    }
}

/// `words!("choose a share with ", Setting::new("held_out"), " of ", rows, " rows")`.
#[macro_export]
macro_rules! words {
    ($($piece:expr),+ $(,)?) => {
        $crate::words::Words::of(&[$(&$piece as &dyn $crate::words::Piece),+])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skin_writes_settings_its_own_way() {
        let hostile = "{force} --force held_out";
        let words = words!(
            hostile,
            ": share ",
            0.5,
            "; choose ",
            Setting::to("held_out", "0.1"),
            " or ",
            Setting::new("force")
        );
        assert_eq!(
            words.to_string(),
            "{force} --force held_out: share 0.5; choose held_out = 0.1 or force"
        );
        let flags = |setting: &Setting| match &setting.value {
            Some(value) => format!("--{} {value}", setting.name),
            None => format!("--{}", setting.name),
        };
        assert_eq!(
            words.told(&flags),
            "{force} --force held_out: share 0.5; choose --held_out 0.1 or --force"
        );
        let names: Vec<_> = words.settings().map(|setting| setting.name).collect();
        assert_eq!(names, ["held_out", "force"]);
    }
}
