//! Choices by name: a word of a closed list, or a name with parameters.

use serde::de::value::Error as Nothing;
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::str::FromStr;

/// One word of a closed list, as serde knows it.
pub fn word<T: DeserializeOwned>(text: &str) -> std::result::Result<T, String> {
    toml::Value::String(text.into())
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_string())
}

/// The words of a closed list, as serde knows them.
pub fn words_of<T: DeserializeOwned>() -> &'static [&'static str] {
    /// Notes the list that a type asks its words to be from, and gives it none.
    struct List<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for List<'_> {
        type Error = Nothing;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> std::result::Result<V::Value, Nothing> {
            Err(Nothing::custom("not a list of words"))
        }

        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _: &'static str,
            words: &'static [&'static str],
            _: V,
        ) -> std::result::Result<V::Value, Nothing> {
            *self.0 = words;
            Err(Nothing::custom("only the list was wanted"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    }

    let mut words: &'static [&'static str] = &[];
    // Fails in any case: what counts is the list.
    let _ = T::deserialize(List(&mut words));
    words
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
    use diffclf::process::Process;
    use diffclf::train::Decay;

    #[test]
    fn lists_are_those_that_serde_reads() {
        assert_eq!(words_of::<Decay>(), ["constant", "cosine"]);
        assert!(words_of::<Form>().len() >= 5);
        for name in words_of::<Form>() {
            word::<Form>(name).unwrap();
        }
        // No list of words.
        assert!(words_of::<Process>().is_empty());
    }
}
