//! Choices by name: a word of a closed list, or a name with parameters.

use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use std::str::FromStr;

/// One word of a closed list, as serde knows it.
pub fn word<T: DeserializeOwned>(text: &str) -> std::result::Result<T, String> {
    toml::Value::String(text.into())
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_string())
}

/// The words of a closed list, as serde knows them: those of a plain choice, or the kinds of one with parameters.
pub fn words_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let of = |read: std::result::Result<T, Listed>| read.err().map_or(&[][..], |listed| listed.0);
    match of(T::deserialize(StrDeserializer::new(NO_WORD))) {
        [] => of(T::deserialize(MapDeserializer::new(
            [("kind", NO_WORD)].into_iter(),
        ))),
        words => words,
    }
}

/// A word of no list, so that every list refuses it.
const NO_WORD: &str = "";

/// The refusal of a word: the list it should have been from.
#[derive(Debug)]
struct Listed(&'static [&'static str]);

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected one of {}", self.0.join(", "))
    }
}

impl std::error::Error for Listed {}

impl serde::de::Error for Listed {
    fn custom<M: std::fmt::Display>(_: M) -> Self {
        Listed(&[])
    }

    fn unknown_variant(_: &str, words: &'static [&'static str]) -> Self {
        Listed(words)
    }
}

/// A choice with parameters: its name alone, or an inline table with the key `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Named<T>(pub T);

impl<T: DeserializeOwned> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let message = |error: toml::de::Error| error.message().to_string();
        let table = if text.trim_start().starts_with('{') {
            let mut whole: toml::Table =
                toml::from_str(&format!("value = {text}")).map_err(message)?;
            whole.remove("value").unwrap_or(toml::Value::Boolean(false))
        } else {
            toml::Table::from_iter([("kind".to_string(), text.into())]).into()
        };
        table.try_into().map(Named).map_err(message)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => text.parse().map_err(D::Error::custom),
            table => table
                .try_into()
                .map(Named)
                .map_err(|error: toml::de::Error| D::Error::custom(error.message())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::energy::Form;
    use diffclf::process::{Process, Spacing};
    use diffclf::train::Decay;

    #[test]
    fn lists_are_those_that_serde_reads() {
        assert_eq!(words_of::<Decay>(), ["constant", "cosine"]);
        assert!(words_of::<Form>().len() >= 5);
        for name in words_of::<Form>() {
            word::<Form>(name).unwrap();
        }
        // Choices with parameters, by their kinds; and what is no list.
        assert_eq!(words_of::<Process>(), Process::NAMES);
        assert_eq!(words_of::<Spacing>(), ["linear", "power", "both-ends"]);
        assert!(words_of::<f64>().is_empty());
    }
}
