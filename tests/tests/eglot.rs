//! The server in a real Emacs, through Eglot, configured as `editors/README.md` says. Skipped, and said so, where there is no Emacs with
//! Eglot: `apt-get install emacs-nox elpa-eglot`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

use std::process::{Command, Stdio};

use stitch_tests::cli::{Folder, binary};
use stitch_tests::neovim::environment;
use stitch_tests::optimizing::TEXT;

/// CUDA in a string.
const PYTHON: &str = r#"import cupy

energy = cupy.RawKernel(r"""
extern "C" __global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = powf(x[i], 3.0f);
}
""", "energy")
"#;

#[test]
fn eglot_shows_findings_takes_settings_and_makes_fixes() {
    let has_eglot = "(condition-case nil (progn (require 'package) \
         (add-to-list 'package-directory-list \"/usr/share/emacs/site-lisp/elpa\") \
         (package-initialize) (require 'eglot)) (error (kill-emacs 1)))";
    let asked =
        Command::new("emacs").args(["--batch", "-Q", "--eval", has_eglot]).stderr(Stdio::null()).status();
    if !asked.is_ok_and(|status| status.success()) {
        return stitch_tests::skip("no Emacs with Eglot is installed");
    }
    let folder = Folder::with(&[("e.cu", TEXT), ("m.py", PYTHON), ("stitchcuda.toml", "")]).unwrap();
    // Emacs says where kernels run.
    let mut variables = environment(&folder).unwrap();
    variables.retain(|(name, _)| name != "STITCHCUDA_DEVICE");
    let test = concat!(env!("CARGO_MANIFEST_DIR"), "/../editors/emacs/eglot-test.el");
    let output = Command::new("emacs")
        .args(["--batch", "-Q", "-l", test, "e.cu", "m.py"])
        .arg(binary().unwrap())
        .current_dir(folder.path().unwrap())
        .env_clear()
        .envs(variables)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("12 passed, 0 failed"), "{said}");
}
