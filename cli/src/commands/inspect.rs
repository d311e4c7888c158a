//! `diffclf inspect`: everything a model file or checkpoint says about itself.

use crate::print::print;
use diffclf::discrete::model::Content as StatesContent;
use diffclf::format::model::ModelFile;
use diffclf::model::Describes;
use diffclf_report::facts::{facts, states_facts};
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{model_path, read_container};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf inspect runs/mine/model.safetensors
  diffclf inspect runs/mine/checkpoint.safetensors --json | jq .content.content.record";

/// Tell everything that a model file holds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model file or checkpoint, or the run folder that holds the model
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The description in a model file, or in a checkpoint, which wraps it.
fn content_of<C: Describes + DeserializeOwned>(file: &ModelFile) -> diffclf::Result<C> {
    #[derive(Deserialize)]
    struct Wrapped<C> {
        content: C,
    }
    if file.kind() == C::CHECKPOINT {
        return Ok(file.content_as::<Wrapped<C>>()?.content);
    }
    file.content_as()
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let path = model_path(&args.model);
    let about = |source| Error::about(&path, source);
    let bytes = read_container(&path)?;
    let file = ModelFile::from_bytes(&bytes).map_err(about)?;
    let tensors = || file.tensors().iter();
    if args.json {
        let tensors: Vec<_> = tensors()
            .map(|(name, tensor)| json!({ "name": name, "type": tensor.data().type_name(), "shape": tensor.shape() }))
            .collect();
        let document = json!({ "kind": file.kind(), "content": file.content().map_err(about)?, "tensors": tensors });
        return print(&format!("{document:#}\n"));
    }
    let kind = file.kind();
    let facts = if [StatesContent::MODEL, StatesContent::CHECKPOINT].contains(&kind) {
        states_facts(&content_of(&file).map_err(about)?)
    } else {
        facts(&content_of(&file).map_err(about)?)
    };
    let mut text = format!(
        "{}: a {}, {} bytes, intact\n\n",
        path.display(),
        file.kind(),
        bytes.len()
    );
    for (name, value) in facts {
        text += &format!("  {name:<18}{value}\n");
    }
    text += "\nTensors\n";
    for (name, tensor) in tensors() {
        let shape: Vec<_> = tensor.shape().iter().map(usize::to_string).collect();
        text += &format!(
            "  {name:<28}{} {}\n",
            tensor.data().type_name(),
            shape.join(" x ")
        );
    }
    print(&text)
}
