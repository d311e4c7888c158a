//! Choices by name: a word of a closed list, or a name with parameters.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use std::str::FromStr;

/// One word of a closed list, as serde knows it.
pub fn word<T: DeserializeOwned>(text: &str) -> std::result::Result<T, String> {
    toml::Value::String(text.into())
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_string())
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
