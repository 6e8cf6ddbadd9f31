//! `tt-smi serve`: figures over HTTP.

use crate::cli::ServeArgs;
use crate::settings::Settings;

pub(crate) fn run(args: &ServeArgs, settings: &Settings) -> anyhow::Result<()> {
    for (place, (name, _)) in args.label.iter().enumerate() {
        if args.label[..place].iter().any(|(before, _)| before == name) {
            return Err(anyhow::Error::new(crate::exit::Usage(format!("--label {name} is given twice"))));
        }
    }
    crate::serve::run(args, settings)
}
