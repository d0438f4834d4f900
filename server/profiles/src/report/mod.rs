//! A profile as one page of HTML: what was profiled and how, what the program did, and what limits each kernel, down to its lines.
//!
//! The page is for a person, so it is complete in itself: no script, nothing that is loaded, its charts are SVG within it. Whatever comes
//! from a profile goes through the template's escaping; charts are the only text that does not, and escape what they write themselves.

mod chart;
mod insight;
mod launch;
mod lines;
mod program;
mod python;
mod view;
mod words;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use crate::profile::Profile;
pub(crate) use words::{extent, file_name};

/// Why a page was not made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A chart could not be drawn.
    #[error("A chart of the report could not be drawn: {0}.")]
    Chart(String),
    /// The template could not be filled in, which a test rules out.
    #[error("The report could not be written: {0:#}.")]
    Template(#[from] minijinja::Error),
}

const NAME: &str = "page.html";

/// The page of a profile, with what the rules say about it.
///
/// # Errors
/// A chart can't be drawn, or the template lacks a value; tests rule out both.
pub fn page(profile: &Profile) -> Result<String, ReportError> {
    let page = view::Page::of(profile)?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template(NAME, include_str!("page.html"))?;
    Ok(environment.get_template(NAME)?.render(Serde(&page))?)
}
