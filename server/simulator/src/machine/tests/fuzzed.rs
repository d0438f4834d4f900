//! What random and damaged texts have found.

use super::Parameter::Pointer;
use super::*;

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// Halves are added, and compared with their signs or without; each result is stored to the next word.
#[test]
fn pairs_of_halves_are_added_and_compared() {
    let operations = [
        "add.s16x2",
        "add.u16x2",
        "min.s16x2",
        "min.u16x2",
        "max.s16x2",
        "max.u16x2",
        "max.s16x2.relu",
        "min.s16x2.relu",
    ];
    let mut body = String::new();
    for (at, operation) in operations.iter().enumerate() {
        body += &match operation.strip_suffix(".s16x2.relu") {
            Some(name) => {
                format!("{name}.relu.s16x2 %r3, %r1, %r2;\nst.global.u32 [%rd1+{}], %r3;\n", at * 4)
            }
            None => format!("{operation} %r3, %r1, %r2;\nst.global.u32 [%rd1+{}], %r3;\n", at * 4),
        };
    }
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 out) {{\n.reg .b32 %r<4>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, 0xffff7fff;\nmov.u32 %r2, 0x00020003;\n{body}ret;\n}}\n"
    );
    let bench = Bench::new(&[&text]);
    let out = bench.array(&[0u32; 8]);
    bench.launch("k", 1, 1, &[Pointer(out)]).unwrap();
    let results: Vec<u32> = bench.read(out, 8);
    assert_eq!(
        results,
        [
            0x0001_8002,
            0x0001_8002,
            0xffff_0003,
            0x0002_0003,
            0x0002_7fff,
            0xffff_7fff,
            0x0002_7fff,
            0x0000_0003
        ]
    );
}

#[test]
fn a_function_may_not_declare_registers_without_end() {
    let text = format!("{HEAD}.visible .entry k() {{\n.reg .b32 %r<4294967295>;\nret;\n}}\n");
    let bench = Bench::new(&[&text]);
    let fault = bench.launch("k", 1, 1, &[]).unwrap_err();
    assert!(fault.message.contains("registers are declared"), "{fault:?}");
}
