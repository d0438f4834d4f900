//! Prints a profile as JSON: `cargo run -p stitch-profiles --example profile -- FILE`. For looking at large ones, and at how much memory they take.

use std::path::Path;

use stitch_profiles::{nsys, trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("which file?")?;
    let path = Path::new(&file);
    let system = match path.extension() {
        Some(extension) if extension == "sqlite" => nsys::read(path)?,
        _ => trace::read(path)?,
    };
    serde_json::to_writer_pretty(std::io::stdout().lock(), &system)?;
    Ok(())
}
