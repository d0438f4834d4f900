//! The reader of PTX: texts are parsed, linked, and every kernel is lowered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stitch_simulator::code::Program;
use stitch_simulator::memory::Memory;
use stitch_simulator::ptx;

/// Bytes of global variables that a text may ask for.
const MEMORY: u64 = 16 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Ok(module) = ptx::parse(&String::from_utf8_lossy(bytes)) else { return };
    let Ok(memory) = Memory::new(MEMORY) else { return };
    let Ok(program) = Program::link(vec![module], &memory) else { return };
    for name in program.kernel_names() {
        if let Some(kernel) = program.kernel(&name) {
            let _ = kernel.code(&program);
        }
    }
});
