use expect_test::expect;

use super::*;
use crate::kernel::{
    Access, Counters, Estimate, KernelLaunch, KernelName, LaunchShape, Metric, SourceLine, Work,
};
use crate::note::{Note, NoteKind};
use crate::profile::{NotTaken, Way};

/// A kernel as the simulator counts it: its loads on line 7 take eight times the sectors they need.
fn counted(name: &str, cycles: f64) -> KernelLaunch {
    let line = |line, sectors, ideal| SourceLine {
        file: "/w/k.cu".into(),
        line,
        accesses: vec![Access::GlobalLoad],
        counters: Counters { sectors: Some(sectors), sectors_ideal: Some(ideal), ..Counters::default() },
        ..SourceLine::default()
    };
    KernelLaunch {
        kernel: KernelName { signature: format!("void {name}(float*)"), base: name.into() },
        shape: LaunchShape { grid: Some([16, 1, 1]), block: Some([256, 1, 1]), ..LaunchShape::default() },
        estimate: Some(Estimate::of([(Work::Sectors, cycles * 0.7), (Work::Instructions, cycles * 0.3)])),
        metrics: [
            (Metric::GlobalSectors, 900.0),
            (Metric::GlobalSectorsIdeal, 200.0),
            (Metric::GlobalLoads, 9.0),
        ]
        .into(),
        lines: vec![line(7, 800, 100), line(9, 100, 100)],
        ..KernelLaunch::default()
    }
}

fn profile() -> Profile {
    let not_taken = vec![NotTaken { by: "Nsight Compute".into(), why: "ncu was not found.".into() }];
    let mut profile = Profile::new("k.cu", Way { by: "the simulator".into(), not_taken, ..Way::default() });
    profile.device = Some("sim:h200".into());
    profile.launches = vec![counted("small", 100.0), counted("large", 300.0)];
    profile.notes = vec![Note::new(NoteKind::Remark, "A note.")];
    profile
}

#[test]
fn what_has_most_of_the_time_comes_first_with_its_class_and_worst_line() {
    expect![[r#"
        Recorded on sim:h200 by the simulator.
        Kernel `large`, grid 16, block 256: memory-bound by device memory, by estimate (70% sectors of memory, 30% instructions). 75% of what all kernels here cost.
        - k.cu:7: The loads of `large` here take 8.0 times the sectors they need: 700 too many, 78% of all global sectors. Gain: about 54% of its estimated cycles: the excess in the part of its kind of work.
        - k.cu:7: 800 sectors (100 needed), 8.0 times the sectors
        - k.cu:9: 100 sectors (100 needed)
        Kernel `small`, grid 16, block 256: memory-bound by device memory, by estimate (70% sectors of memory, 30% instructions). 25% of what all kernels here cost.
        - k.cu:7: The loads of `small` here take 8.0 times the sectors they need: 700 too many, 78% of all global sectors. Gain: about 54% of its estimated cycles: the excess in the part of its kind of work.
        - k.cu:7: 800 sectors (100 needed), 8.0 times the sectors
        - k.cu:9: 100 sectors (100 needed)
        Note: A note.
        Not by Nsight Compute: ncu was not found."#]]
    .assert_eq(&brief(&profile(), 1_000));
}

#[test]
fn what_does_not_fit_is_cut_least_important_first_and_said() {
    let whole = brief(&profile(), 1_000);
    let mut before = usize::MAX;
    for part in [100, 80, 60, 50, 40, 25] {
        let budget = tokens(whole.len()) * part / 100;
        let text = brief(&profile(), budget);
        assert!(tokens(text.len()) <= budget, "{budget}: {text}");
        assert!(text.len() <= before, "{budget}");
        before = text.len();
        assert_eq!(text == whole, !text.contains("Left out for length"), "{text}");
    }
    let short = brief(&profile(), 150);
    assert!(short.contains("`large`") && short.contains("k.cu:7: The loads of `large`"), "{short}");
    assert!(!short.contains("ncu was not found") && short.contains("remarks"), "{short}");
    // What is left of a budget of nothing is who made it.
    assert!(brief(&profile(), 0).starts_with("Recorded on sim:h200 by the simulator."));
}

#[test]
fn limits_are_weighed_by_what_their_kernels_take() {
    let limits = limits(&profile());
    let told: Vec<(&str, &str, Option<u32>)> = limits
        .iter()
        .map(|limit| {
            let line = limit.place.as_ref().map(|place| place.line);
            (limit.kernel.as_str(), limit.code.as_str(), line)
        })
        .collect();
    let code = "ncu/uncoalesced-access";
    assert_eq!(told, [("large", code, Some(7)), ("small", code, Some(7))]);
    assert!((limits[0].gain - 0.75 * 0.7 * 700.0 / 900.0).abs() < 1e-9, "{limits:?}");
    assert!((limits[0].gain / limits[1].gain - 3.0).abs() < 1e-9, "{limits:?}");
}
