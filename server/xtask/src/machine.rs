//! What tests need of the machine besides Rust: found, or installed where that is ours to do.

use std::process::Command;

use anyhow::{Result, bail};

use crate::editors;
use crate::test::step;

/// Says to the tests that there is no PyTorch, and that this is known.
const WITHOUT_TORCH: &str = "STITCHCUDA_TESTS_WITHOUT_TORCH";
/// A PyTorch without CUDA, for the tests of the Verifier for PyTorch. The one of PyPI brings 5 GB.
const TORCH: Need = Need {
    packages: &["python3-torch"],
    // Interpreters that may have it: the active one, and the one that a distribution's packages are for.
    found_by: &[&["python3", "-c", "import torch"], &["/usr/bin/python3", "-c", "import torch"]],
    otherwise: "the tests that need PyTorch are skipped",
};
/// What builds extensions of PyTorch.
const NINJA: Need = Need {
    packages: &["ninja-build"],
    found_by: &[&["ninja", "--version"]],
    otherwise: "the tests that build extensions of PyTorch fail",
};
/// The daemon that a worker is reached through in a test.
const SSHD: Need = Need {
    packages: &["openssh-server"],
    found_by: &[&["test", "-x", "/usr/sbin/sshd"], &["test", "-x", "/usr/local/sbin/sshd"]],
    otherwise: "the test of a worker behind ssh is skipped",
};
/// The package that the test of clang's check between keystrokes wants.
const CLANG: Need = Need {
    packages: &["clang-22"],
    found_by: &[&["clang-22", "--version"]],
    otherwise: "the test that needs clang is skipped",
};

/// What the tests in editors run besides the editors that are installed into the build folder.
const OF_EDITORS: [Need; 5] = [
    // Beside the extension for VS Code; an older one will do.
    Need {
        packages: &["clangd-22", "clangd"],
        found_by: &[&["clangd-22", "--version"], &["clangd", "--version"]],
        otherwise: "the test beside clangd is skipped",
    },
    Need {
        packages: &["emacs-nox"],
        found_by: &[&["emacs", "--version"]],
        otherwise: "the test of Emacs is skipped",
    },
    // Emacs has it since 29.
    Need {
        packages: &["elpa-eglot"],
        found_by: &[&["emacs", "--batch", "--eval", LOADS_EGLOT]],
        otherwise: "the test of Emacs is skipped",
    },
    Need {
        packages: &["tmux"],
        found_by: &[&["tmux", "-V"]],
        otherwise: "the test of Neovim in a terminal fails",
    },
    Need {
        packages: &["luarocks", "lua5.1"],
        found_by: &[&["luarocks", "--version"]],
        otherwise: "the test of the rock is skipped",
    },
];

const LOADS_EGLOT: &str = "(progn (require 'package) (package-initialize) (require 'eglot))";

/// Something that tests need.
struct Need {
    /// Packages of Debian's that have it, the first choice first.
    packages: &'static [&'static str],
    /// Command lines of which one ends well where it is there.
    found_by: &'static [&'static [&'static str]],
    /// What becomes of the tests without it.
    otherwise: &'static str,
}

impl Need {
    fn is_met(&self) -> bool {
        self.found_by.iter().any(|line| match line {
            [program, arguments @ ..] => said(program, arguments).is_some(),
            [] => false,
        })
    }

    /// Installs it if it is not there.
    fn get(&self) -> Result<()> {
        let mut tried = Vec::new();
        for package in self.packages {
            if self.is_met() {
                return Ok(());
            }
            tried.extend(install_package(package).err().map(|error| format!("{error:#}")));
        }
        if self.is_met() { Ok(()) } else { bail!("{}", tried.join("; ")) }
    }

    /// The same; what can't be had is said, or is an error where it is required.
    fn meet(&self, is_required: bool) -> Result<()> {
        match self.get() {
            Err(error) if !is_required => {
                eprintln!("{error:#}; {}", self.otherwise);
                Ok(())
            }
            other => other,
        }
    }
}

/// Gets what some tests need besides, where that is ours to do; gives the variables that say what is missing.
///
/// # Errors
/// Editors are required, and what their tests need can't be had.
pub fn prepare(with_editors: bool) -> Result<Vec<(&'static str, &'static str)>> {
    let is_required = editors::are_required();
    CLANG.meet(is_required)?;
    TORCH.meet(false)?;
    NINJA.meet(false)?;
    SSHD.meet(false)?;
    if with_editors {
        OF_EDITORS.iter().try_for_each(|need| need.meet(is_required))?;
    }
    Ok(if TORCH.is_met() { Vec::new() } else { vec![(WITHOUT_TORCH, "1")] })
}

/// Installs a package of the system's, where that is ours to do.
///
/// # Errors
/// We are not root, there is no apt-get, or it fails.
pub fn install_package(name: &str) -> Result<()> {
    if said("id", &["-u"]).is_none_or(|id| id.trim() != "0") || said("apt-get", &["--version"]).is_none() {
        bail!("`{name}` is not installed, and only root may install it, with apt-get");
    }
    let apt = |arguments: &[&str]| {
        step(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let get = || apt(&["install", "--yes", "--no-install-recommends", name]);
    // A new machine may know no packages yet.
    get().or_else(|_| apt(&["update"]).and_then(|()| get()))
}

/// What a program prints, if it can be run and ends well.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed_and_what_can_not_be_had_fails_where_it_is_required() {
        let there = Need {
            packages: &["no-such-package-of-debian"],
            found_by: &[&["no-such-program"], &["true"]],
            otherwise: "",
        };
        there.meet(true).unwrap();
        let missing = Need { packages: &[], found_by: &[&["no-such-program"]], otherwise: "it is skipped" };
        missing.meet(false).unwrap();
        missing.meet(true).unwrap_err();
    }

    #[test]
    fn the_machines_of_ci_require_the_editors() {
        let run = include_str!("../../../.ci/run");
        let required = format!("{}=1 ", editors::REQUIRED);
        assert!(run.contains(&required) && run.contains(" cargo xtask test"), "{run}");
    }
}
