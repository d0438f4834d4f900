//! The plugin for Neovim as a person sees it: in a terminal of tmux's, with keys that are typed and a screen that is read.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use stitch_tests::cli::Folder;
use stitch_tests::neovim;
use stitch_tests::optimizing::TEXT;

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A terminal in which a program runs.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    fn start(folder: &Folder, program: &[String]) -> Self {
        let terminal = Self { socket: folder.path().unwrap().join("../tmux") };
        let mut command = terminal.tmux();
        command.args(["-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "40"]).args(program);
        let status = command
            .current_dir(folder.path().unwrap())
            .env_clear()
            .envs(neovim::environment(folder).unwrap())
            .env("TERM", "xterm-256color")
            .status()
            .expect("tmux is needed: `apt-get install tmux`");
        assert!(status.success());
        terminal
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket);
        command
    }

    /// Types a text as it is.
    fn type_text(&self, text: &str) {
        assert!(self.tmux().args(["send-keys", "-l", text]).status().unwrap().success());
    }

    /// Presses a key by its name.
    fn press(&self, key: &str) {
        assert!(self.tmux().args(["send-keys", key]).status().unwrap().success());
    }

    fn screen(&self) -> String {
        let output = self.tmux().args(["capture-pane", "-p"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the screen shows all of this, and gives it.
    fn wait(&self, texts: &[&str]) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if texts.iter().all(|text| screen.contains(text)) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "{texts:?} not in:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.tmux().arg("kill-server").status());
    }
}

/// Keeps a screen for the README, where `STITCHCUDA_TEST_SCREENS` names a folder.
fn keep(name: &str, screen: &str) {
    if let Some(folder) = std::env::var_os("STITCHCUDA_TEST_SCREENS") {
        std::fs::write(PathBuf::from(folder).join(name), screen).unwrap();
    }
}

#[test]
fn a_person_optimises_a_kernel_while_typing() {
    let folder = Folder::with(&[("e.cu", TEXT), ("stitchcuda.toml", "")]).unwrap();
    let mut program = vec![neovim::program().unwrap().display().to_string()];
    program.extend(neovim::arguments());
    for line in [
        "let maplocalleader = ','",
        "set laststatus=2 statusline=%f\\ %m%=%{v:lua.require'stitchcuda'.status()}",
        "lua vim.diagnostic.config({ virtual_text = true })",
        "lua vim.lsp.enable('stitchcuda')",
    ] {
        program.extend(["--cmd".to_owned(), line.to_owned()]);
    }
    program.push("e.cu".to_owned());
    let terminal = Terminal::start(&folder, &program);
    // Neovim 0.11 has lenses at the end of a line, where ours leave out what the hint says; later ones have them above it.
    let version = Command::new(neovim::program().unwrap()).arg("--version").output().unwrap().stdout;
    let lens = if version.starts_with(b"NVIM v0.11") {
        "15 registers · 100% occupancy 1 launch | Optimize"
    } else {
        "15 registers · 100% occupancy · 1 launch | Optimize"
    };

    terminal.wait(&["1 launch", "powf"]);
    terminal.type_text(":w");
    terminal.press("Enter");
    // The number at the end of the line, the lens, and the finding, all at once.
    let screen = terminal.wait(&["{ 15 registers · 100% occupancy", lens, "■ `powf`"]);
    assert!(screen.contains("powf(x[i], 3.0f);  // π"), "{screen}");
    keep("file.txt", &screen);

    terminal.type_text("/powf");
    terminal.press("Enter");
    terminal.type_text(":StitchCuda optimize");
    terminal.press("Enter");
    let screen = terminal.wait(&["Optimize energy: "]);
    keep("job.txt", &screen);
    // In Insert mode when the candidate comes, nothing opens under the fingers.
    terminal.type_text("i");
    let screen = terminal.wait(&["a candidate for e.cu waits for Normal mode"]);
    assert!(!screen.contains("candidate: ") && screen.contains("-- INSERT --"), "{screen}");
    terminal.press("Escape");
    let screen = terminal.wait(&["candidate: ", "the code as it is", "x[i] * x[i] * x[i]", ",a accept"]);
    keep("review.txt", &screen);
    terminal.type_text(",a");
    terminal.wait(&["was accepted"]);
    terminal.type_text(":wqa");
    terminal.press("Enter");
    let begun = Instant::now();
    while terminal.tmux().arg("has-session").output().unwrap().status.success() {
        assert!(begun.elapsed() < PATIENCE, "{}", terminal.screen());
        std::thread::sleep(Duration::from_millis(50));
    }
    let saved = std::fs::read_to_string(folder.path().unwrap().join("e.cu")).unwrap();
    assert_eq!(saved, TEXT.replace("powf(x[i], 3.0f)", "x[i] * x[i] * x[i]"));
}
