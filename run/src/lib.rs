//! From data to verdict: settings, data files, run folders, training, judging and generation. It knows paths, not terminals: progress
//! and interruption go through a [`Watch`].

pub mod anneal;
pub mod archive;
pub mod base;
pub mod bridge;
pub mod columns;
pub mod compare;
pub mod compose;
pub mod data;
pub mod density;
pub mod dependence;
pub mod diagnose;
pub mod endpoints;
pub mod error;
pub mod evaluate;
pub mod exact;
pub mod files;
pub mod free_energy;
pub mod generate;
pub mod judging;
mod known_end;
pub mod last_word;
pub mod machine;
pub mod memory;
pub mod named;
pub mod network;
pub mod notice;
pub mod observe;
pub mod origin;
pub mod outputs;
pub mod prepare;
pub mod resolve;
pub mod run_folder;
pub mod selftest;
pub mod session;
pub mod settings;
pub mod simulate;
mod smallest_time;
pub mod table;
pub mod train;
pub mod trajectory;
pub mod values;
pub mod watch;
pub mod words;

pub use error::{Error, Result};
pub use watch::{Bar, Done, Silent, Watch};
