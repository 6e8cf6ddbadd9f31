//! Reports: a record as one page that a browser shows, from a file and without a network.
//!
//! A [`Report`] reads a record twice, in bounded memory, and keeps what a page shows: each figure over time, peaks with
//! what they were made of, what was never freed, failed allocations, programs, and maps of the memory at some moments.
//! [`Report::write_html`] writes it as one file that has everything in it.
//!
//! - **Exactness**: a figure is told as exact only if every event that it depends on is in the record. Where events are
//!   missing, or a process may have ended, figures are lower bounds or ranges, and the page draws and counts the gaps.
//! - **Names are text of other processes.** They are data in the page, never markup, and the page's policy forbids every
//!   request and every script but its own.
//!
//! ```no_run
//! let record = tt_shm_record::Record::open("night.ttrec")?;
//! let report = tt_shm_report::Report::of(&record, &Default::default(), &mut |_| {})?;
//! report.write_html(&mut std::fs::File::create("night.html")?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod census;
mod chips;
mod document;
mod figure;
mod findings;
mod follow;
mod page;
mod reduce;
mod series;
mod text;
mod timeline;
mod units;

use std::io::{self, Write};

use tt_shm_record::{ReadError, Record};

/// How a report is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The title; the name of the file if there is none.
    pub title: Option<String>,
}

/// What a page shows of a record.
#[derive(Debug)]
pub struct Report {
    document: document::Document,
}

impl Report {
    /// Reads a record. `progress` is called now and then with the part that is done.
    pub fn of(
        record: &Record,
        options: &Options,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Report, ReadError> {
        Ok(Report { document: reduce::document(record, options, progress)? })
    }

    /// Writes the page.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        page::write(&self.document, out)
    }

    /// The data of the page as JSON, for tests and other pages. Not a stable format.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&self.document)
    }
}
