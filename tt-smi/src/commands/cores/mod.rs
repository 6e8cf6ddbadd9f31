//! `tt-smi cores`: the L1 of each core.

pub(crate) mod json;
mod text;

use std::io::Write;

use crate::cli::CoresArgs;
use crate::lists::cores::Listing;
use crate::output::json::write as write_json;
use crate::select::select;
use crate::settings::Settings;
use json::CoresJson;

pub(crate) fn run(args: &CoresArgs, settings: &Settings) -> anyhow::Result<()> {
    let (segments, directory) = super::look(settings)?;
    let wanted = select(&args.on.device, &directory)?;
    let mut listing = Listing::default();
    for segment in &segments.live {
        listing.add(segment, &directory, &wanted);
    }
    listing.lack(&segments.unread);
    let devices = listing.devices();
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &CoresJson::new(&devices, &listing.doubts, settings.namespace.as_str()))?;
    } else if devices.is_empty() {
        writeln!(out, "No cores known{}.", super::why_nothing_listed(&segments))?;
    } else {
        text::write(&mut out, &devices, settings.paint)?;
    }
    out.flush()?;
    listing.doubts.iter().for_each(|doubt| eprintln!("tt-smi: {doubt}"));
    Ok(())
}
