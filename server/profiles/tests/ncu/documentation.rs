//! The page `docs/profiles.md`, of which every table is made here.

use std::fmt::Write as _;

use expect_test::expect_file;
use stitch_profiles::kernel::{METRICS, Metric, explain, rules};
use stitch_profiles::ncu::Report;
use stitch_profiles::python::estimate::ESTIMATE_RULES;

use crate::proof::{planted, proof};
use crate::session;

/// A text in a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Kernels with a trait, the rule that tells it, and the kernel that does the same without it.
const TWINS: &[(&str, &str, &str)] = &[
    ("scale_strided", "uncoalesced-load", "scale_coalesced"),
    ("transpose_naive", "uncoalesced-store", "transpose_padded"),
    ("transpose_conflict", "bank-conflict", "transpose_padded"),
    ("sum_divergent", "divergence", "sum_sequential"),
];

fn gains(report: &Report) -> String {
    let named = |name: &str| report.launches.iter().find(|launch| launch.kernel.base == name).unwrap();
    let mut rows = String::new();
    for (kernel, rule, twin) in TWINS {
        let [took, better] = [kernel, twin].map(|name| named(name).metrics[&Metric::Duration]);
        let insights = explain(named(kernel)).insights;
        let gain = insights
            .iter()
            .find(|insight| insight.rule == *rule)
            .and_then(|insight| insight.gain.as_ref())
            .unwrap();
        let (estimated, saved) = (gain.share * 100.0, (1.0 - better / took) * 100.0);
        // No estimate may be further off than a fifth of the kernel's time.
        assert!((estimated - saved).abs() <= 20.0, "{kernel}: {estimated} and {saved}");
        let (took, better) = (took * 1e6, better * 1e6);
        writeln!(rows, "| `{kernel}` | {rule} | {estimated:.0}% | `{twin}` | {took:.1} µs | {better:.1} µs | {saved:.0}% |").unwrap();
    }
    rows
}

/// The page about profiles, of which all tables are made here. Rewritten by `UPDATE_EXPECT=1`.
#[test]
fn the_documentation_shows_what_was_proven() {
    let mut page = include_str!("../data/profiles.intro.md").to_owned();
    page.push_str("\n## Proof\n\n");
    page.push_str(include_str!("../data/profiles.proof.md"));
    page.push_str(
        "\n| kernel | planted | marked line | told, full size | told, small size |\n|---|---|---|---|---|\n",
    );
    let reports = [session("full"), session("small")];
    for planted in planted() {
        let told = reports.each_ref().map(|report| {
            let launch = report.launches.iter().find(|launch| launch.kernel.base == planted.kernel).unwrap();
            match proof(&explain(launch), &planted) {
                Some(insight) => format!("`{}` at {}", insight.code, insight.place.as_ref().unwrap().line),
                None => "not told: its grid is too small there".to_owned(),
            }
        });
        let line = planted.line.map_or("the kernel".to_owned(), |line| line.to_string());
        writeln!(page, "| `{}` | {} | {line} | {} | {} |", planted.kernel, planted.text, told[0], told[1])
            .unwrap();
    }
    page.push_str("\nEverything that is told at full size, the class first:\n\n| kernel | class | told |\n|---|---|---|\n");
    for launch in &reports[0].launches {
        let explanation = explain(launch);
        let told = explanation.insights.iter().map(|insight| {
            let line = insight.place.as_ref().map(|place| format!(":{}", place.line)).unwrap_or_default();
            format!("{}{line}", insight.rule)
        });
        let told: Vec<String> = told.collect();
        writeln!(page, "| `{}` | {} | {} |", launch.kernel.base, explanation.class.label(), told.join(", "))
            .unwrap();
    }
    page.push_str(
        "\nEstimated gains beside the times of the good twins, at full size under the profiler:\n\n",
    );
    page.push_str("| kernel | rule | estimated | twin | took | the twin took | saved |\n|---|---|---|---|---|---|---|\n");
    page.push_str(&gains(&reports[0]));
    page.push_str("\nThe simulator tells, of the same program at the small size, what it can know: not spills, pipes, stalls and what only time tells.\n\n");
    page.push_str(include_str!("../data/profiles.simulator.md"));
    page.push_str("\n## Rules for kernels\n\n");
    page.push_str(include_str!("../data/profiles.rules.md"));
    page.push_str("\n| rule | code | holds when | told at | thresholds from | estimated gain |\n|---|---|---|---|---|---|\n");
    for rule in rules() {
        let gain = rule.gain.as_ref().map_or("", |(_, formula)| formula);
        let when: Vec<String> = rule.when.iter().map(|condition| format!("`{condition}`")).collect();
        let (when, source) = (when.join(" and "), cell(rule.source));
        writeln!(page, "| {} | `{}` | {when} | {} | {source} | {gain} |", rule.id, rule.code, rule.at)
            .unwrap();
    }
    page.push_str(include_str!("../data/profiles.estimates.md"));
    page.push_str("\n| class | holds when | thresholds from |\n|---|---|---|\n");
    for rule in ESTIMATE_RULES {
        let when: Vec<String> = rule.when.iter().map(|condition| format!("`{condition}`")).collect();
        let when = if when.is_empty() { "none of these does".to_owned() } else { when.join(" and ") };
        writeln!(page, "| {} | {} | {} |", rule.bound.label(), cell(&when), rule.source).unwrap();
    }
    page.push_str(
        "\n## Metrics\n\n| metric | what it is | unit | names in Nsight Compute |\n|---|---|---|---|\n",
    );
    for info in METRICS {
        let names: Vec<String> = info.names.iter().map(|name| format!("`{name}`")).collect();
        writeln!(page, "| {:?} | {} | {:?} | {} |", info.metric, info.title, info.unit, names.join(", "))
            .unwrap();
    }
    expect_file!["../../../../docs/profiles.md"].assert_eq(&page);
}
