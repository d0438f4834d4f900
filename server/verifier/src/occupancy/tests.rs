use super::*;

const FROM_NVIDIA: &str = include_str!("../../tests/fixtures/occupancy.txt");

/// NVIDIA's bits for what limits.
fn bits(limiters: &[Limiter]) -> u32 {
    limiters
        .iter()
        .map(|limiter| match limiter {
            Limiter::Warps => 1,
            Limiter::Registers => 2,
            Limiter::SharedMemory => 4,
            Limiter::Blocks => 8,
            Limiter::Barriers => 16,
        })
        .sum()
}

/// Where barriers limit, NVIDIA's bits still hold what would limit without them; ours do not.
fn same_limiters(ours: u32, nvidia: u32) -> bool {
    let barriers = 16;
    if ours & nvidia & barriers != 0 { ours & nvidia == ours } else { ours == nvidia }
}

fn differences(table: &str) -> (usize, Vec<String>) {
    let mut compared = 0;
    let mut different = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let [architecture, registers, shared, barriers, block, blocks, factors] = numbers[..] else {
            panic!("{line}");
        };
        let limits = limits(architecture.to_string().parse().unwrap()).unwrap();
        let usage = Usage { registers, shared: shared.into(), barriers, block };
        let found = theoretical_occupancy(limits, &usage);
        if found.active_blocks != blocks || !same_limiters(bits(&found.limiters), factors) {
            different.push(format!("{line}: {found:?}"));
        }
        compared += 1;
    }
    (compared, different)
}

#[test]
fn agrees_with_the_calculator_of_the_toolkit() {
    let (compared, different) = differences(FROM_NVIDIA);
    assert_eq!(compared, 560);
    assert!(different.is_empty(), "{} differ: {:#?}", different.len(), different.first());
}

#[test]
fn suffixes_share_a_row_and_unknown_architectures_have_none() {
    assert_eq!(limits("sm_90a".parse().unwrap()), limits("sm_90".parse().unwrap()));
    assert_eq!(limits("sm_52".parse().unwrap()), None);
    assert_eq!(table::LIMITS.len(), 15);
    // Said by `nvcc --list-gpu-arch` of CUDA 13.5; the last is left out, and so said to be unknown.
    for known in ["75", "80", "86", "87", "88", "89", "90", "100", "103", "110", "120", "121"] {
        assert!(limits(known.parse().unwrap()).is_some(), "{known}");
    }
    assert_eq!(limits("107".parse().unwrap()), None);
    assert_eq!(unknown_for("sm_107").as_deref(), Some("occupancy unknown for sm_107"));
    assert_eq!(unknown_for("sm_90a"), None);
    let (eighty_six, eighty_eight) = (limits("86".parse().unwrap()), limits("88".parse().unwrap()));
    let architecture = Architecture::new(8, 6);
    assert_eq!(eighty_eight.map(|row| Limits { architecture, ..*row }).as_ref(), eighty_six);
    assert!(table::LIMITS.is_sorted_by_key(|row| row.architecture));
}

#[test]
fn says_what_limits() {
    let limits = limits(Architecture::new(9, 0)).unwrap();
    let usage = |registers, shared, block| Usage { registers, shared, barriers: 1, block };
    let occupancy = theoretical_occupancy(limits, &usage(64, 0, 256));
    assert_eq!((occupancy.active_warps, occupancy.reason().as_str()), (32, "limited by registers"));
    assert!((occupancy.ratio() - 0.5).abs() < 1e-12);
    assert_eq!(theoretical_occupancy(limits, &usage(32, 0, 256)).reason(), "not limited");
    let huge = theoretical_occupancy(limits, &usage(32, 300_000, 256));
    assert_eq!(huge.reason(), "does not fit a multiprocessor: too much of shared memory");
    assert_eq!(theoretical_occupancy(limits, &usage(32, u64::MAX, 256)).active_blocks, 0);
    assert_eq!(theoretical_occupancy(limits, &usage(u32::MAX, 0, u32::MAX)).active_blocks, 0);
    assert_eq!(theoretical_occupancy(limits, &usage(0, 0, 0)).active_blocks, 0);
}
