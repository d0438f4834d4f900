//! Prints a profile as JSON, with what the rules say: `cargo run -p stitch-profiles --example profile -- FILE [PYTHON_FILE…]`. For looking at large
//! ones, and at how much memory they take.

use std::path::{Path, PathBuf};

use stitch_profiles::python::{self, Workspace};
use stitch_profiles::{nsys, system};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let file = arguments.next().ok_or("which file?")?;
    let files: Vec<PathBuf> = arguments.collect();
    let is_export = Path::new(&file).extension().is_some_and(|extension| extension == "sqlite");
    let (system, python) = if is_export {
        (nsys::read(&file)?, None)
    } else {
        let folders = files.iter().filter_map(|file| file.parent().map(Path::to_path_buf)).collect();
        let (system, python) = python::read(&file, &Workspace { folders, files, from_elsewhere: true })?;
        (system, Some(python))
    };
    let told = system::explain(&system, python.as_ref());
    let all = serde_json::json!({ "system": system, "python": python, "told": told });
    serde_json::to_writer_pretty(std::io::stdout().lock(), &all)?;
    Ok(())
}
