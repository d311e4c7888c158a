//! The one closed list of what can go wrong in the library; every message says what was found, what was expected and what to do.

/// Result of a library call.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number given by the caller is outside its range.
    #[error("{name} is {found}, expected {expected}")]
    Value {
        /// Which setting.
        name: &'static str,
        /// What was given.
        found: String,
        /// What is allowed.
        expected: String,
    },
    /// An array has the wrong shape.
    #[error("{what} has shape {found}, expected {expected}")]
    Shape {
        /// Which array.
        what: String,
        /// Its shape.
        found: String,
        /// The shape it should have.
        expected: String,
    },
}
