//! `cargo xtask rewrites`: what the rewrites do to whole repositories: how often each is made, and why it is not.
//!
//! With `--out`, each file that a rule changes is written anew with all rewrites of that rule, and listed in `index.jsonl`, so that
//! a script can compile and verify candidates.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use stitch_analysis::rewrites::{Proposal, RULES, Rule, propose, rewritten};
use stitch_analysis::{Analysis, Language, Workspace};

use crate::hits::{collect, sample};

/// What to look at.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folders, a repository each; the `.cu` and `.cuh` files in them are read.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Look at this rule alone: `rewrite/float-literals`. May be given more than once.
    #[arg(long)]
    rule: Vec<String>,
    /// Write each changed file, and `index.jsonl`, to this folder.
    #[arg(long)]
    out: Option<PathBuf>,
    /// How many places of each rule to show: made ones and refused ones.
    #[arg(long, default_value_t = 0)]
    sample: usize,
    /// Which sample: the same seed shows the same places.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What a rule did.
#[derive(Default)]
struct Tally {
    made: usize,
    files: usize,
    /// Refusals by reason, without the names in it.
    refused: BTreeMap<String, usize>,
    made_in: BTreeMap<String, usize>,
    places: Vec<String>,
    refusals: Vec<String>,
}

/// Counts what each rule makes and refuses.
///
/// # Errors
/// When standard output or a candidate can't be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let asked = |rule: &&&'static Rule| {
        arguments.rule.is_empty() || arguments.rule.iter().any(|code| code == rule.code.as_str())
    };
    let rules: Vec<&'static Rule> = RULES.iter().filter(asked).copied().collect();
    let mut index = match &arguments.out {
        Some(out) => {
            fs::create_dir_all(out)?;
            Some(BufWriter::new(fs::File::create(out.join("index.jsonl"))?))
        }
        None => None,
    };
    let mut tallies: Vec<Tally> = rules.iter().map(|_| Tally::default()).collect();
    let mut count = 0;
    for root in &arguments.paths {
        let repository =
            root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut files = Vec::new();
        collect(root, &mut files);
        for path in files.iter().filter(|path| Language::of_path(path) == Some(Language::Cuda)) {
            let Ok(bytes) = fs::read(path) else { continue };
            let Ok(source) = String::from_utf8(bytes) else { continue };
            count += 1;
            let analysis = Analysis::of(Language::Cuda, &source);
            let proposals = propose(&analysis, &Workspace::default(), None);
            for (rule, tally) in rules.iter().zip(&mut tallies) {
                let own = proposals.iter().filter(|proposal| proposal.rule().code == rule.code);
                let made = tally.take(own, path, &source, &repository);
                if let (Some(index), Some(out), true) = (&mut index, &arguments.out, made > 0) {
                    write_candidate(rule, path, &source, (&repository, root), out, index)?;
                }
            }
        }
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{count} files")?;
    for (rule, tally) in rules.iter().zip(&tallies) {
        tally.show(rule, arguments, &mut out)?;
    }
    Ok(())
}

impl Tally {
    /// Counts the proposals of one file. Returns how many can be made.
    fn take<'p>(
        &mut self,
        proposals: impl Iterator<Item = &'p Proposal>,
        path: &Path,
        source: &str,
        repository: &str,
    ) -> usize {
        let mut made = 0;
        for proposal in proposals {
            let line = source.get(..proposal.place().start).unwrap_or("").matches('\n').count() + 1;
            let place = format!("{}:{line}", path.display());
            match proposal {
                Proposal::Rewrite(rewrite) => {
                    made += 1;
                    self.places.push(format!("{place}: {}", rewrite.title));
                }
                Proposal::Refused(refusal) => {
                    *self.refused.entry(without_names(&refusal.reason)).or_default() += 1;
                    self.refusals.push(format!("{place}: {}", refusal.reason));
                }
            }
        }
        if made > 0 {
            self.made += made;
            self.files += 1;
            *self.made_in.entry(repository.to_owned()).or_default() += made;
        }
        made
    }

    fn show(&self, rule: &Rule, arguments: &Arguments, out: &mut impl Write) -> io::Result<()> {
        let refused: usize = self.refused.values().sum();
        writeln!(
            out,
            "\n##### {}: {} places, {} made in {} files, {refused} refused",
            rule.code,
            self.made + refused,
            self.made,
            self.files
        )?;
        for (repository, made) in &self.made_in {
            writeln!(out, "  {made:5} made in {repository}")?;
        }
        let mut reasons: Vec<(&String, &usize)> = self.refused.iter().collect();
        reasons.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        for (reason, times) in reasons {
            writeln!(out, "  {times:5} refused: {reason}")?;
        }
        for (what, places) in [("made", &self.places), ("refused", &self.refusals)] {
            for index in sample(places.len(), arguments.sample, arguments.seed) {
                writeln!(out, "    {what}: {}", places[index])?;
            }
        }
        Ok(())
    }
}

/// A reason with what differs from place to place left out: quoted code and numbers.
fn without_names(reason: &str) -> String {
    let parts = reason.split('`').enumerate();
    let quoted = parts.map(|(at, part)| if at % 2 == 1 { "…" } else { part });
    let mut text: String = quoted.collect::<Vec<_>>().join("`");
    text = text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    while text.contains("##") {
        text = text.replace("##", "#");
    }
    text
}

fn write_candidate(
    rule: &'static Rule,
    path: &Path,
    source: &str,
    (repository, root): (&str, &Path),
    out: &Path,
    index: &mut impl Write,
) -> anyhow::Result<()> {
    let (text, count) = rewritten(&[rule], source, &Workspace::default());
    let slug = rule.code.as_str().trim_start_matches("rewrite/");
    let inside = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('/', "__");
    let candidate = out.join(slug).join(format!("{repository}__{inside}"));
    if let Some(folder) = candidate.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&candidate, text)?;
    let row = json!({
        "rule": rule.code.as_str(),
        "repository": repository,
        "reference": path,
        "candidate": candidate,
        "rewrites": count,
    });
    writeln!(index, "{row}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::without_names;

    #[test]
    fn reasons_are_told_apart_by_what_they_say_not_by_names() {
        assert_eq!(without_names("line 12 uses `tile` as `a[3]`"), "line # uses `…` as `…`");
    }
}
