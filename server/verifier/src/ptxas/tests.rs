use super::*;

fn row(entry: &Entry) -> (&str, &str, Option<u32>, Option<u32>, u64, u64, u64, u64) {
    let frame = entry.frame.unwrap();
    let Entry { mangled, architecture, registers, barriers, shared, .. } = entry;
    let Frame { stack, spill_stores, spill_loads } = frame;
    (mangled, architecture, *registers, *barriers, *shared, stack, spill_stores, spill_loads)
}

#[test]
fn a_function_that_is_not_inlined_keeps_its_own_spills() {
    let found = parse(include_str!("../../tests/fixtures/ptxas/ptxas.txt"));
    let rows: Vec<_> = found.entries.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            ("_ZN2ns4edgeEP1P", "sm_90", Some(10), Some(1), 512, 0, 0, 0),
            ("_Z5mixerILi96EEvPfi", "sm_90", Some(32), Some(0), 0, 640, 660, 672),
            ("edge", "sm_90", Some(8), Some(0), 0, 0, 0, 0),
        ]
    );
    assert_eq!(found.entries[1].cumulative_stack, Some(640));
    let [helper] = &found.device_functions[..] else { panic!("{:?}", found.device_functions) };
    assert_eq!(helper.mangled, "_Z6helperPfi");
    assert_eq!((helper.frame.spill_stores, helper.frame.spill_loads), (68, 68));
}

#[test]
fn constant_banks_of_the_module_are_no_kernels() {
    let found = parse(include_str!("../../tests/fixtures/ptxas/ptxas_sm80.txt"));
    let [entry] = &found.entries[..] else { panic!("{found:?}") };
    assert_eq!((entry.registers, entry.barriers, entry.shared), (Some(11), Some(1), 512));
    assert_eq!(entry.constants, BTreeMap::from([(0, 360)]));
}

#[test]
fn cuda_11_says_nothing_of_barriers() {
    let found = parse(include_str!("../../tests/fixtures/ptxas/ptxas_cuda11.txt"));
    let [entry] = &found.entries[..] else { panic!("{found:?}") };
    assert_eq!((entry.registers, entry.barriers), (Some(40), None));
    assert_eq!(entry.constants, BTreeMap::from([(0, 352), (2, 8)]));
}

#[test]
fn real_output_is_read_whole() {
    for (text, kernels) in [
        (include_str!("../../tests/fixtures/ptxas/kernels.ptxas-v.txt"), 17),
        (include_str!("../../tests/fixtures/ptxas/lines.ptxas-v.txt"), 15),
    ] {
        let found = parse(text);
        assert_eq!(found.entries.len(), kernels);
        assert!(found.entries.iter().all(|entry| entry.registers.is_some() && entry.frame.is_some()));
        assert_eq!(found.device_functions, []);
    }
}

#[test]
fn several_architectures_carriage_returns_and_odd_names() {
    let one = "ptxas info    : Compiling entry function 'it's' for 'sm_80'\r\nptxas info    : Function properties for it's\r\n    \
               8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\r\nptxas info    : Used 20 registers, used 1 \
               barriers, 16+8 bytes smem, 8 bytes lmem, 1 textures\r\n";
    let found = parse(&format!("{one}{}", one.replace("sm_80", "sm_90a")));
    let rows: Vec<_> = found.entries.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            ("it's", "sm_80", Some(20), Some(1), 24, 8, 4, 12),
            ("it's", "sm_90a", Some(20), Some(1), 24, 8, 4, 12)
        ]
    );
    assert_eq!(found.entries[0].local, Some(8));
}

#[test]
fn a_function_between_the_kernel_and_its_registers_does_not_take_them() {
    let found = parse(
        "ptxas info    : Compiling entry function 'k' for 'sm_70'\nptxas info    : Function properties for helper\n    \
         16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Function properties for k\n    \
         0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 9 registers\n\
         ptxas info    : Used 99 registers\nptxas info    : Used\nptxas info    : Used x registers, , 1 bytes\n",
    );
    assert_eq!(found.entries[0].registers, Some(9));
    assert_eq!(found.entries[0].frame, Some(Frame::default()));
    assert_eq!(found.device_functions[0].frame.stack, 16);
}

#[test]
fn a_spill_that_only_the_warning_names_is_kept() {
    let found = parse(
        "ptxas warning : Registers are spilled to local memory in function 'f', 4 bytes spill stores, 8 bytes spill loads\n",
    );
    assert_eq!(found.device_functions[0].frame, Frame { stack: 0, spill_stores: 4, spill_loads: 8 });
    assert_eq!(parse("ptxas info\nptxas info :\n    bytes\n  1 bytes stack frame\n"), Resources::default());
}
