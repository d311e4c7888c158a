//! One file per command.

pub mod anneal;
pub mod compare;
pub mod compose;
pub mod convert;
pub mod demo;
pub mod density;
pub mod diagnose;
pub mod evaluate;
pub mod free_energy;
pub mod inspect;
pub mod molecule;
pub mod observe;
pub mod report;
pub mod reproduce;
pub mod rows;
pub mod sample;
pub mod selftest;
pub mod simulate;
pub mod surface;
pub mod train;
pub mod weight;
