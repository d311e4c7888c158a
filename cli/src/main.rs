//! The diffclf program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(diffclf_cli::main_with(std::env::args_os()))
}
