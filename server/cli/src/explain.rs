//! `stitchcuda explain CODE`: the page of a finding's code, the same text that a hover shows.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use stitch_findings::{CODES, Code, CodeInfo};

use crate::format::{Format, print_json};
use crate::status::Status;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The code, for example `static/uncoalesced-access` or only `uncoalesced-access`; all are listed without one
    code: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Prints the page, or the list.
///
/// # Errors
/// Writing to standard output.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let Some(name) = &arguments.code else {
        return list(arguments.format, out);
    };
    let Some(info) = find(name) else {
        let close = closest(name).map_or(String::new(), |code| format!(" Did you mean `{code}`?"));
        anstream::eprintln!("No finding has the code `{name}`.{close} `stitchcuda explain` lists them all.");
        return Ok(Status::Usage);
    };
    match arguments.format {
        Format::Human => writeln!(out, "{}", info.page.trim_end())?,
        Format::Json => print_json(out, &row(info, true))?,
    }
    Ok(Status::Good)
}

fn list(format: Format, out: &mut impl Write) -> Result<Status> {
    match format {
        Format::Human => {
            let width = CODES.iter().map(|info| info.code.as_str().len()).max().unwrap_or(0);
            for info in CODES {
                let off = if info.on_by_default { "" } else { " (off by default)" };
                writeln!(out, "{:width$}  {}{off}", info.code.as_str(), info.title)?;
            }
        }
        Format::Json => {
            let codes: Vec<_> = CODES.iter().map(|info| row(info, false)).collect();
            print_json(out, &json!({ "schema": "stitchcuda.codes/1", "codes": codes }))?;
        }
    }
    Ok(Status::Good)
}

fn row(info: &CodeInfo, with_page: bool) -> serde_json::Value {
    let mut row = json!({
        "code": info.code,
        "title": info.title,
        "severity": info.severity,
        "onByDefault": info.on_by_default,
    });
    if with_page {
        row["schema"] = json!("stitchcuda.code/1");
        row["page"] = json!(info.page);
    }
    row
}

/// By the whole code, or by its slug where only one code has it.
fn find(name: &str) -> Option<&'static CodeInfo> {
    if let Some(code) = Code::parse(name) {
        return Some(code.info());
    }
    let mut matches = CODES.iter().filter(|info| slug(info.code) == name);
    let only = matches.next()?;
    matches.next().is_none().then_some(only)
}

fn slug(code: Code) -> &'static str {
    code.as_str().split_once('/').map_or(code.as_str(), |(_, slug)| slug)
}

fn closest(name: &str) -> Option<Code> {
    let slug_of = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    CODES
        .iter()
        .map(|info| (strsim::jaro_winkler(&slug_of(name), slug(info.code)), info.code))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, code)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(code: Option<&str>, format: Format) -> (Status, String) {
        let mut out = Vec::new();
        let status = run(&Arguments { code: code.map(str::to_owned), format }, &mut out).unwrap();
        (status, String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_code_has_its_page_by_name_and_the_list_has_them_all() {
        let (_, list) = explain(None, Format::Human);
        for info in CODES {
            let (status, page) = explain(Some(info.code.as_str()), Format::Human);
            assert_eq!(status, Status::Good);
            assert!(page.starts_with(&format!("# {}", info.code)));
            assert!(list.contains(info.title));
        }
    }

    #[test]
    fn a_slug_alone_is_enough_where_it_is_the_only_one() {
        assert!(explain(Some("double-literal"), Format::Human).1.starts_with("# static/double-literal"));
        for shared in ["error", "uncoalesced-access"] {
            assert_eq!(explain(Some(shared), Format::Human).0, Status::Usage, "{shared}");
        }
        assert_eq!(closest("static/uncoalesed-acess"), Some(Code::UNCOALESCED_ACCESS));
    }

    #[test]
    fn json_has_a_schema() {
        let (_, text) = explain(Some("ptxas/spill"), Format::Json);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["schema"], &value["code"]), (&json!("stitchcuda.code/1"), &json!("ptxas/spill")));
    }
}
