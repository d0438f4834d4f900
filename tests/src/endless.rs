//! A toolkit whose compiler never ends by itself: for tests of how it is ended.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

/// Makes the toolkit in `root`. Its nvcc ignores the signals that ask to end, starts a child, and one more that leaves its group,
/// and then writes the ids of itself and of the first child to `root/started`, a line a compile.
///
/// # Errors
/// It can't be written.
pub fn toolkit(root: &Path) -> Result<()> {
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.48'; exit 0;; esac\n\
         trap '' INT TERM HUP\nsleep 600 &\nsetsid sleep 601 &\necho $$ $! >> {}/started\nwhile :; do sleep 1; done\n",
        root.display()
    );
    for (name, text) in [
        ("bin/nvcc", script.as_str()),
        ("include/cuda_runtime.h", "#pragma once\n"),
        ("include/cuda_runtime_api.h", "#define CUDART_VERSION 13000\n"),
        ("include/cuda.h", "#define CUDA_VERSION 13000\n"),
    ] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap_or(root)).context("making a folder")?;
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("making it executable")?;
    }
    Ok(())
}

/// Whether a process runs, and does not only lie there until someone asks for its status.
pub fn is_alive(id: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}
