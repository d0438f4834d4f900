//! Source lines of a launch with what each costs.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::words;
use crate::kernel::{KernelLaunch, LineRow, line_table};
use crate::units;

/// Lines of a launch that are shown: those that cost most.
const MOST: usize = 60;

/// The lines of one file.
#[derive(Debug, Serialize)]
pub(super) struct FileView {
    name: String,
    path: String,
    lines: Vec<LineView>,
}

/// One line.
#[derive(Debug, Serialize)]
struct LineView {
    number: u32,
    text: String,
    /// How hot, from 0 to 10.
    heat: u32,
    share: String,
    width: String,
    remarks: Vec<String>,
    /// Lines between this and the one above are left out.
    after_gap: bool,
}

/// Lines by file, and what their shares are of.
#[derive(Debug, Default, Serialize)]
pub(super) struct LinesView {
    files: Vec<FileView>,
    share_of: &'static str,
    left_out: usize,
}

/// What a line costs, for its heat: its part of the samples, or of the instructions where nobody sampled.
fn costs(rows: &[LineRow]) -> (Vec<f64>, &'static str) {
    if rows.iter().any(|row| row.share.is_some()) {
        return (rows.iter().map(|row| row.share.unwrap_or(0.0)).collect(), "samples");
    }
    let counts = rows.iter().map(|row| row.counters.instructions.unwrap_or(0) as f64);
    let all: f64 = counts.clone().sum();
    (counts.map(|count| if all > 0.0 { count / all } else { 0.0 }).collect(), "instructions of warps")
}

/// The lines of a launch; `None` where they were not counted.
pub(super) fn lines(launch: &KernelLaunch) -> Option<LinesView> {
    // The worst access first.
    let rows = line_table(launch);
    if rows.is_empty() {
        return None;
    }
    let texts: HashMap<(&str, u32), &str> =
        launch.lines.iter().map(|line| ((line.file.as_str(), line.line), line.text.as_str())).collect();
    let (costs, share_of) = costs(&rows);
    let hottest = costs.iter().copied().fold(0.0, f64::max);
    let mut shown: Vec<(&LineRow, f64)> = rows.iter().zip(costs).collect();
    shown.sort_by(|a, b| {
        b.0.remarks.is_empty().cmp(&a.0.remarks.is_empty()).reverse().then(b.1.total_cmp(&a.1))
    });
    let left_out = shown.len().saturating_sub(MOST);
    shown.truncate(MOST);
    let mut files: BTreeMap<&str, Vec<(&LineRow, f64)>> = BTreeMap::new();
    for (row, cost) in shown {
        files.entry(&row.place.file).or_default().push((row, cost));
    }
    let mut files: Vec<_> = files.into_iter().collect();
    let cost_of = |lines: &[(&LineRow, f64)]| lines.iter().map(|(_, cost)| cost).sum::<f64>();
    files.sort_by(|a, b| cost_of(&b.1).total_cmp(&cost_of(&a.1)));
    let view = |(path, mut rows): (&str, Vec<(&LineRow, f64)>)| {
        rows.sort_by_key(|(row, _)| row.place.line);
        let mut above = None;
        let line = |(row, cost): &(&LineRow, f64)| {
            let number = row.place.line;
            let after_gap = above.replace(number).is_some_and(|above| number > above + 1);
            LineView {
                number,
                text: texts.get(&(path, number)).copied().unwrap_or_default().to_owned(),
                heat: if hottest > 0.0 { (cost / hottest * 10.0).round() as u32 } else { 0 },
                share: units::percent(*cost),
                width: words::width(*cost),
                remarks: row.remarks.clone(),
                after_gap,
            }
        };
        let lines = rows.iter().map(line).collect();
        FileView { name: words::file_name(path).to_owned(), path: path.to_owned(), lines }
    };
    Some(LinesView { files: files.into_iter().map(view).collect(), share_of, left_out })
}
