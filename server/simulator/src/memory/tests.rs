use std::collections::HashMap;

use proptest::prelude::*;

use super::table::Table;
use super::*;

const KINDS: [Kind; 5] = [Kind::Device, Kind::Managed, Kind::Pinned, Kind::Module, Kind::Heap];

#[test]
fn memory_is_written_and_read_where_it_is_allocated() {
    let memory = Memory::new(1 << 20).unwrap();
    let start = memory.allocate(10, 1, Kind::Device).unwrap();
    assert_eq!(start % MIN_ALIGN, 0);
    assert!(start >= memory.base() && start < memory.base() + LENGTH);
    memory.write(start + 2, b"abcdefgh").unwrap();
    let mut back = [0; 10];
    memory.read(start, &mut back).unwrap();
    assert_eq!(&back, b"\0\0abcdefgh");
    // SAFETY: allocated just now, in this process.
    assert_eq!(unsafe { *((start + 2) as *const u8) }, b'a');
    assert_eq!(memory.write(start + 3, b"abcdefgh"), Err(OutOfRange { address: start + 3, size: 8 }));
    assert_eq!(memory.check(start, u64::MAX), Err(OutOfRange { address: start, size: u64::MAX }));
}

#[test]
fn the_limit_holds_and_freeing_gives_back() {
    let memory = Memory::new(1024).unwrap();
    let first = memory.allocate(700, 256, Kind::Device).unwrap();
    let refused = memory.allocate(512, 256, Kind::Device).unwrap_err();
    assert_eq!(refused, OutOfMemory { asked: 512, used: 768, limit: 1024 });
    assert!(memory.allocate(u64::MAX, 256, Kind::Device).is_err());
    memory.free(first).unwrap();
    assert_eq!(memory.free(first), Err(NotAllocated { address: first }));
    assert_eq!((memory.used(), memory.peak()), (0, 768));
    memory.allocate(1024, 256, Kind::Device).unwrap();
}

#[test]
fn nothing_is_inside_an_allocation_of_zero_bytes() {
    let memory = Memory::new(1024).unwrap();
    let start = memory.allocate(0, 256, Kind::Module).unwrap();
    assert_eq!(memory.find(start), None);
    assert_eq!(memory.snapshot().find(start), None);
    memory.free(start).unwrap();
}

#[test]
fn a_place_is_zero_when_it_is_given_out_again() {
    let memory = Memory::new(1 << 20).unwrap();
    let mut starts = HashMap::new();
    for round in 0..600 {
        let start = memory.allocate(5000, 256, Kind::Device).unwrap();
        let mut bytes = [1; 5000];
        memory.read(start, &mut bytes).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0), "round {round}");
        memory.write(start, &[7; 5000]).unwrap();
        memory.free(start).unwrap();
        *starts.entry(start).or_insert(0) += 1;
    }
    assert!(starts.values().any(|&times| times > 1), "no place was used twice");
}

#[test]
fn a_snapshot_stays_and_the_next_one_differs() {
    let memory = Memory::new(1 << 20).unwrap();
    let (before, generation) = (memory.snapshot(), memory.generation());
    let start = memory.allocate(100, 256, Kind::Managed).unwrap();
    assert_eq!(start % PAGE, 0);
    assert_ne!(memory.generation(), generation);
    assert_eq!(before.find(start), None);
    let after = memory.snapshot();
    assert_eq!(after.find(start + 99).map(|found| found.start), Some(start));
    assert_eq!(after.find(start + 100), None);
    assert!(Arc::ptr_eq(&after, &memory.snapshot()));
    assert_eq!(after.around(start + 100), (after.find(start), None));
}

#[test]
fn two_regions_of_one_process_lie_apart() {
    let (one, two) = (Memory::new(1024).unwrap(), Memory::new(1024).unwrap());
    assert_ne!(one.base(), two.base());
    let (a, b) = (one.allocate(8, 8, Kind::Device).unwrap(), two.allocate(8, 8, Kind::Device).unwrap());
    one.write(a, &[1; 8]).unwrap();
    two.write(b, &[2; 8]).unwrap();
    let mut back = [0; 8];
    one.read(a, &mut back).unwrap();
    assert_eq!(back, [1; 8]);
}

#[test]
fn adopted_memory_is_the_same_under_both_addresses() {
    let memory = Memory::new(1 << 20).unwrap();
    let backing = memory.allocate(PAGE, PAGE, Kind::Pinned).unwrap();
    let address = FIRST_BASE + 40 * LENGTH;
    memory.adopt(address, PAGE, backing).unwrap();
    memory.write(address + 8, b"seen").unwrap();
    let mut back = [0; 4];
    memory.read(backing + 8, &mut back).unwrap();
    assert_eq!(&back, b"seen");
    assert!(memory.adopt(address, PAGE, backing).is_err(), "the place is taken");
    memory.release(address).unwrap();
    assert_eq!(memory.find(address), None);
    assert_eq!(memory.release(address), Err(NotAllocated { address }));
}

#[derive(Debug, Clone)]
enum Step {
    Allocate { size: u64, align: u64, kind: usize },
    Free(usize),
    FreeWrong(u64),
    Find(usize, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![0..600u64, 0..100_000u64, Just(u64::MAX)];
    prop_oneof![
        3 => (size, 0..14u32, 0..KINDS.len()).prop_map(|(size, shift, kind)| Step::Allocate { size, align: 1 << shift, kind }),
        2 => any::<usize>().prop_map(Step::Free),
        1 => any::<u64>().prop_map(Step::FreeWrong),
        2 => (any::<usize>(), 0..200_000u64).prop_map(|(which, offset)| Step::Find(which, offset)),
    ]
}

proptest! {
    /// Against a model that is a plain list: allocations are apart, aligned, counted, found, and freed once.
    #[test]
    fn the_table_agrees_with_a_plain_list(steps in proptest::collection::vec(step(), 1..400)) {
        let (base, length, limit) = (1 << 30, 4 << 20, 1 << 20);
        let mut table = Table::new(base, length, limit);
        let mut model: Vec<Allocation> = Vec::new();
        for step in steps {
            match step {
                Step::Allocate { size, align, kind } => {
                    let kind = KINDS[kind];
                    if let Ok(start) = table.allocate(size, align, kind) {
                        prop_assert_eq!(start % align.max(MIN_ALIGN), 0);
                        prop_assert!(start > base && start + size <= base + length);
                        let new = Allocation { start, size, kind };
                        let apart = |old: &Allocation| new.end() + MIN_ALIGN <= old.start || old.end() + MIN_ALIGN <= start;
                        prop_assert!(model.iter().all(apart), "{new:?} touches another of {model:?}");
                        model.push(new);
                    } else {
                        // Refused only where it is large for what is left.
                        prop_assert!(size > (limit - table.used()) / 2 || size > limit / 8, "{size} refused");
                    }
                }
                Step::Free(which) if !model.is_empty() => {
                    let old = model.swap_remove(which % model.len());
                    prop_assert_eq!(table.free(old.start), Ok(old));
                    prop_assert_eq!(table.free(old.start), Err(NotAllocated { address: old.start }));
                }
                Step::FreeWrong(address) if model.iter().all(|old| old.start != address) => {
                    prop_assert_eq!(table.free(address), Err(NotAllocated { address }));
                }
                Step::Find(which, offset) if !model.is_empty() => {
                    let address = model[which % model.len()].start + offset;
                    let expected = model.iter().find(|old| old.contains(address, 1)).copied();
                    prop_assert_eq!(table.find(address), expected);
                    prop_assert_eq!(Allocations::new(table.all()).find(address).copied(), expected);
                }
                _ => {}
            }
            let sum: u64 = model.iter().map(|old| old.size).sum();
            prop_assert!(table.used() >= sum && table.used() <= limit);
        }
        let mut all = table.all();
        all.sort_by_key(|one| one.start);
        model.sort_by_key(|one| one.start);
        prop_assert_eq!(all, model);
    }
}
