//! The server in a real Emacs, through Eglot, configured as `editors/README.md` says. Skipped, and said so, where there is no Emacs with
//! Eglot: `apt-get install emacs-nox elpa-eglot`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

use std::process::{Command, Stdio};

use stitch_tests::cli::{Folder, binary};
use stitch_tests::neovim::environment;
use stitch_tests::optimizing::TEXT;

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
    let folder = Folder::with(&[("e.cu", TEXT), ("stitchcuda.toml", "")]).unwrap();
    let test = concat!(env!("CARGO_MANIFEST_DIR"), "/../editors/emacs/eglot-test.el");
    let output = Command::new("emacs")
        .args(["--batch", "-Q", "-l", test, "e.cu"])
        .arg(binary().unwrap())
        .current_dir(folder.path().unwrap())
        .env_clear()
        .envs(environment(&folder).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("9 passed, 0 failed"), "{said}");
}
