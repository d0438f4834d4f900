//! `math` against a device: `hardware/make.py` writes a program that runs every instruction on drawn inputs, and
//! `hardware/results.txt` holds the checksums of what an H200 gave, `hardware/approximate.txt` outputs of approximate functions.

mod approximate;
mod evaluate;
mod inputs;
mod whole;

const RESULTS: &str = include_str!("hardware/results.txt");

/// Instructions whose first `count` outputs have another checksum than the device's.
fn different(count: u64) -> Vec<&'static str> {
    let mut different = Vec::new();
    for line in RESULTS.lines().filter(|line| !line.starts_with('#')) {
        let [few, all, rest] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let [name, types, _] = rest.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let mut sum = 0u64;
        for index in 0..count {
            let drawn: Vec<u64> =
                types.split(',').zip(0..).map(|(ty, which)| inputs::input(ty, index, which)).collect();
            let output =
                evaluate::evaluate(name, &drawn).unwrap_or_else(|| panic!("nothing computes {name}"));
            sum = sum.wrapping_add(inputs::mix(output ^ inputs::mix(index)));
        }
        if format!("{sum:016x}") != if count == 2048 { few } else { all } {
            different.push(name);
        }
    }
    different
}

#[test]
fn every_instruction_gives_what_an_h200_gives() {
    assert_eq!(RESULTS.lines().count(), 1094);
    assert_eq!(different(2048), Vec::<&str>::new());
}

#[test]
#[ignore = "minutes without optimisation"]
fn every_instruction_gives_what_an_h200_gives_on_all_inputs() {
    assert_eq!(different(65536), Vec::<&str>::new());
}
