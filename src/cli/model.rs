//! `postrider model`.

use crate::app::{ModelKind, ModelOut, add_model, models};
use crate::config::Config;

use super::args_lifecycle::{ModelArgs, ModelWhat};
use super::failure::{Exit, Failure};
use super::output::Output;
use super::safe;

/// Takes a model into the data directory, or lists those in it.
pub(super) fn run(config: &Config, args: ModelArgs, out: Output) -> Result<Exit, Failure> {
    match args.what {
        ModelWhat::Add { dir, name } => {
            let model = add_model(config, &dir, name.as_deref())?;
            if out.json {
                out.value(&model)?;
            } else {
                tell(&model, out)?;
                let folder = safe::line(&model.folder.to_string_lossy());
                let setting = match model.kind {
                    ModelKind::Embedding => "embedding",
                    ModelKind::Reranker => "rerank",
                };
                out.text(&format!(
                    "to use it, set\n  {setting} = \"folder\"\n  {setting}_folder = \"{folder}\"\n"
                ))?;
            }
        }
        ModelWhat::List => {
            let models = models(config)?;
            if out.json {
                out.value(&models)?;
            } else if models.is_empty() {
                out.text("no model; `postrider model add DIR` takes one in\n")?;
            } else {
                models.iter().try_for_each(|model| tell(model, out))?;
            }
        }
    }
    Ok(Exit::Fine)
}

fn tell(model: &ModelOut, out: Output) -> Result<(), Failure> {
    let ModelOut { name, folder, kind, dimensions, tokens_max, digest, parity } = model;
    let what = match (kind, dimensions, tokens_max) {
        (ModelKind::Embedding, Some(dimensions), Some(tokens_max)) => {
            format!("{dimensions} dimensions, {tokens_max} tokens")
        }
        _ => "a reranker".to_owned(),
    };
    let digest = digest.as_ref().map_or_else(String::new, |digest| format!(", {digest}"));
    let parity = if *parity { ", its parity vectors are met" } else { "" };
    let (name, folder) = (safe::line(name), safe::line(&folder.to_string_lossy()));
    out.text(&format!("{name}: {what}{digest}{parity}; {folder}\n"))
}
