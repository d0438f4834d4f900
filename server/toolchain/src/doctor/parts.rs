//! The items about programs: toolkit, host compiler, Python, profilers.

use std::time::Duration;

use super::{Item, Status};
use crate::discovery::{self, Discovery, HostCompiler, Search, Tool, Toolkit, Tools, Verdict};
use crate::process::Program;

const TOOLKIT_WHY: &str = "nvcc compiles .cu files: its errors, warnings, registers and spills come from it.";
const TOOLKIT_REMEDY: &str = "Run `stitchcuda toolchain install` for a private toolkit in your cache folder, or name one in the configuration (`nvcc.path`) or in CUDA_HOME.";

/// The toolkit in use, what is wrong, what was seen but is not used.
pub(super) fn toolkit(discovery: &Discovery) -> Vec<Item> {
    let mut items = Vec::new();
    match &discovery.chosen {
        Some(toolkit) => {
            items.push(used(toolkit));
            items.push(library(toolkit));
        }
        None => {
            let mut detail = String::from("No toolkit can be used.");
            for note in &discovery.notes {
                detail.push(' ');
                detail.push_str(note);
            }
            items
                .push(Item::new("CUDA toolkit", TOOLKIT_WHY, Status::Missing, detail).remedy(TOOLKIT_REMEDY));
        }
    }
    for problem in &discovery.problems {
        items.push(
            Item::new("CUDA toolkit setting", TOOLKIT_WHY, Status::Problem, problem)
                .remedy("Correct the setting or mend the installation, as the text says."),
        );
    }
    for toolkit in &discovery.seen {
        let detail = format!("CUDA {} in {}, seen but not used.", toolkit.version, toolkit.root.display());
        let item = Item::new("other CUDA toolkit", "Tells which others there are.", Status::Optional, detail);
        let item = item.at(&toolkit.nvcc).version(Some(toolkit.version)).origin(toolkit.origin.words());
        items.push(
            item.remedy(format!("To use it, set `nvcc.path` or CUDA_HOME to {}.", toolkit.root.display())),
        );
    }
    items
}

fn used(toolkit: &Toolkit) -> Item {
    let detail = format!("CUDA {}, headers in {}.", toolkit.version, toolkit.include.display());
    let item = Item::new("CUDA toolkit", TOOLKIT_WHY, Status::Ok, detail);
    item.at(&toolkit.nvcc).version(Some(toolkit.version)).origin(toolkit.origin.words())
}

fn library(toolkit: &Toolkit) -> Item {
    let why = "Programs are linked with the CUDA runtime.";
    let name = "CUDA runtime library";
    let Some(folder) = &toolkit.library else {
        return Item::new(name, why, Status::Problem, "The toolkit has no libcudart; programs can't be linked, only checked.")
            .remedy("Install the runtime of this toolkit (conda: cuda-cudart-dev; wheels: use `stitchcuda toolchain install`).");
    };
    let has = |file: &str| folder.join(file).exists();
    if has("libcudart_static.a") || has("libcudart.so") {
        return Item::new(name, why, Status::Ok, "Found.").at(folder);
    }
    Item::new(name, why, Status::Problem, "It has neither libcudart_static.a nor an unversioned libcudart.so, for which the linker looks.")
        .at(folder)
        .remedy("Use `stitchcuda toolchain install`, which makes the link, or install the development package of the runtime.")
}

pub(super) fn host_compiler(search: &Search, toolkit: Option<&Toolkit>) -> Item {
    let why = "nvcc hands the host part of each file to it.";
    let name = "host compiler";
    let remedy = "Install g++ (Debian, Ubuntu: `apt install g++`; Fedora: `dnf install gcc-c++`; conda: gxx_linux-64).";
    let found = discovery::host_compilers(search, toolkit);
    let item = |compiler: &HostCompiler, status, detail: String| {
        Item::new(name, why, status, detail).at(&compiler.path).version(compiler.version.as_ref())
    };
    match (&found.default, &found.usable) {
        (Some(default), Some(usable)) if default == usable => match usable.verdict {
            Verdict::Accepted => item(usable, Status::Ok, "nvcc takes it.".into()),
            _ => item(
                usable,
                Status::Ok,
                "Found; there is no nvcc to compare it with, or it says no version.".into(),
            ),
        },
        (Some(default), other) => {
            let Verdict::Refused(refusal) = &default.verdict else {
                return item(default, Status::Ok, "Found.".into());
            };
            match other {
                Some(usable) => item(usable, Status::Problem, format!("The default one, {}, is refused: {refusal}. This one is taken.", default.path.display()))
                    .remedy(format!("Set NVCC_CCBIN={} for your own builds too, or install a newer CUDA.", usable.path.display())),
                None => item(default, Status::Problem, format!("{refusal}."))
                    .remedy("Install an older g++ beside it (such as g++-13) and set NVCC_CCBIN to it, or install a newer CUDA (`stitchcuda toolchain install`)."),
            }
        }
        (None, Some(usable)) => item(
            usable,
            Status::Problem,
            "There is no g++ on PATH, which nvcc would use; this one is taken.".into(),
        )
        .remedy(format!("Set NVCC_CCBIN={}, or install g++.", usable.path.display())),
        (None, None) => {
            Item::new(name, why, Status::Missing, "There is no g++ and no clang++.").remedy(remedy)
        }
    }
}

/// The active Python, and whether it can find wheels.
pub(super) fn python(search: &Search) -> Vec<Item> {
    let why = "PyTorch files are run by it, and its pip finds the wheels for a private toolkit.";
    let interpreters = discovery::interpreters(search);
    let Some(active) = interpreters.first() else {
        return vec![
            Item::new("python3", why, Status::Optional, "There is none. CUDA files need none.")
                .remedy("Install Python 3 (Debian, Ubuntu: `apt install python3 python3-pip`), or activate an environment."),
        ];
    };
    let ask = |path: &std::path::Path, arguments: &[&str]| {
        let program =
            Program::new(path).args(arguments).environment(search.environment.clone().without_secrets());
        let finished =
            program.time_limit(Duration::from_secs(20)).output_limit(1 << 16).run_blocking().ok()?;
        finished.status.success().then(|| finished.stdout_text().trim().to_string())
    };
    let Some(version) =
        ask(&active.path, &["-I", "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))"])
    else {
        return vec![
            Item::new("python3", why, Status::Problem, "It does not run.")
                .at(&active.path)
                .origin(&active.origin)
                .remedy("Repair this environment, or activate another."),
        ];
    };
    let python = Item::new("python3", why, Status::Ok, "Found.")
        .at(&active.path)
        .version(Some(version))
        .origin(&active.origin);
    let with_pip = interpreters.iter().find_map(|interpreter| {
        let said = ask(&interpreter.path, &["-m", "pip", "--version"])?;
        let version = said.split_whitespace().nth(1)?.to_string();
        Some((interpreter, version))
    });
    let why = "`stitchcuda toolchain install` asks it where the CUDA wheels are.";
    let pip = match with_pip {
        Some((interpreter, version)) if is_new_enough(&version) => {
            Item::new("pip", why, Status::Ok, "New enough to find wheels.").at(&interpreter.path).version(Some(version))
        }
        Some((interpreter, version)) => Item::new("pip", why, Status::Optional, "It is older than 22.2, and can't report where wheels are.")
            .at(&interpreter.path)
            .version(Some(version))
            .remedy(format!("`{} -m pip install --upgrade pip`.", interpreter.path.display())),
        None => Item::new("pip", why, Status::Optional, "No Python has it.")
            .remedy(format!("`{} -m ensurepip --upgrade` (Debian, Ubuntu: `apt install python3-pip`; uv: `uv pip install pip`).", active.path.display())),
    };
    vec![python, pip]
}

fn is_new_enough(pip: &str) -> bool {
    let mut numbers = pip.split('.').map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (22, 2)
}

/// The tools that work goes on without: name, what for, how to get it.
pub(super) fn optional_tools(tools: &Tools) -> Vec<Item> {
    let rows: [(&str, &Option<Tool>, &str, &str); 6] = [
        (
            "ncu",
            &tools.ncu,
            "Nsight Compute measures a kernel: memory traffic, stalls, pipes.",
            "Install Nsight Compute (package cuda-nsight-compute-X-Y or nsight-compute).",
        ),
        (
            "nsys",
            &tools.nsys,
            "Nsight Systems shows where the time of a whole program goes.",
            "Install Nsight Systems (package nsight-systems); Nsight Compute carries one too.",
        ),
        (
            "compute-sanitizer",
            &tools.compute_sanitizer,
            "Finds races, accesses out of bounds and uninitialised reads on a device.",
            "Run `stitchcuda toolchain install`, or install the package cuda-sanitizer-X-Y.",
        ),
        (
            "cuobjdump",
            &tools.cuobjdump,
            "Takes compiled kernels apart.",
            "Run `stitchcuda toolchain install`, or install the package cuda-cuobjdump-X-Y.",
        ),
        (
            "nvdisasm",
            &tools.nvdisasm,
            "Shows the machine instructions of a kernel.",
            "Run `stitchcuda toolchain install`, or install the package cuda-nvdisasm-X-Y.",
        ),
        (
            "clang",
            &tools.clang,
            "Checks CUDA files between keystrokes; without it errors come with each save.",
            "Install clang 22 (Debian, Ubuntu: `apt install clang-22`).",
        ),
    ];
    rows.into_iter()
        .map(|(name, tool, why, remedy)| match tool {
            Some(tool) => {
                Item::new(name, why, Status::Ok, "Found.").at(&tool.path).version(tool.version.as_ref())
            }
            None => Item::new(name, why, Status::Optional, "Not found.").remedy(remedy),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_is_new_enough_from_22_2() {
        for (version, expected) in [
            ("22.2", true),
            ("23.2.1", true),
            ("26.0b1", true),
            ("22.1.9", false),
            ("9.0.1", false),
            ("x", false),
        ] {
            assert_eq!(is_new_enough(version), expected, "{version}");
        }
    }
}
