//! What the simulator lacks for given PTX files: `cargo run -p stitch-simulator --example refusals -- FILE.ptx…`.
//!
//! Prints a line for each kernel that would be refused, then how many kernels there are and how many would run.

#![allow(clippy::print_stdout)]

use std::error::Error;

use stitch_simulator::code::Program;
use stitch_simulator::memory::Memory;
use stitch_simulator::ptx;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut kernels, mut good) = (0, 0);
    for path in std::env::args().skip(1) {
        let memory = Memory::new(1 << 36)?;
        let text = std::fs::read_to_string(&path)?;
        let program = match ptx::parse(&text).map_err(|e| e.to_string()) {
            Ok(module) => Program::link(vec![module], &memory).map_err(|e| e.to_string()),
            Err(error) => Err(error),
        };
        let program = match program {
            Ok(program) => program,
            Err(error) => {
                println!("{path}: {error}");
                continue;
            }
        };
        for name in program.kernel_names() {
            let Some(kernel) = program.kernel(name) else { continue };
            kernels += 1;
            match kernel.code(&program) {
                Ok(_) => good += 1,
                Err(refusal) => println!("{path}: {name}: {refusal}"),
            }
        }
    }
    println!("{good} of {kernels} kernels run");
    Ok(())
}
