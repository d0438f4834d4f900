//! Writes random kernels: `random_kernels FOLDER FIRST COUNT` makes `kernels.cu` for nvcc and `kernels.cpp` for a compiler of the host. Programs
//! of both print the same lines.
//!
//! On a GPU: `nvcc -arch=native -fmad=false kernels.cu -o kernels && ./kernels > device.txt`, and compare with what `g++ -O1 -ffp-contract=off
//! kernels.cpp` prints.

#[path = "../tests/random/mod.rs"]
mod random;

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, first, count] = &words[..] else {
        return Err("usage: random_kernels FOLDER FIRST COUNT".into());
    };
    let texts = random::texts(first.parse()?, count.parse()?);
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("kernels.cu"), texts.device)?;
    std::fs::write(folder.join("kernels.cpp"), texts.host)?;
    Ok(())
}
