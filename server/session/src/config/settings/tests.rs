//! Each case is a scenario as text, and what comes of it: the settings that differ from the defaults, and the warnings.

use std::fmt::Write;
use std::fs;

use expect_test::Expect;

use super::*;
use crate::config::keys;

mod mistakes;
mod places;
mod precedence;
mod targets;

/// A scenario: parts that begin with `//- KIND ARGUMENT`.
///
/// `file PATH` writes a file (`~` is the home, `user` the user's configuration folder); `folder PATH` and `untrusted PATH` are
/// folders of the workspace; `editor [FOLDER]` is followed by JSON; `environment` and `flags` by `NAME=value` lines;
/// `for PATH` asks for a file's settings.
struct Scenario {
    root: tempfile::TempDir,
    folders: Vec<Folder>,
    editor: Vec<(Option<PathBuf>, Value)>,
    environment: BTreeMap<String, String>,
    flags: Vec<(String, String)>,
    questions: Vec<String>,
}

impl Scenario {
    fn read(text: &str) -> Self {
        let mut scenario = Self {
            root: tempfile::tempdir().unwrap(),
            folders: Vec::new(),
            editor: Vec::new(),
            environment: BTreeMap::new(),
            flags: Vec::new(),
            questions: Vec::new(),
        };
        for part in text.split("//- ").skip(1) {
            let (head, body) = part.split_once('\n').unwrap_or((part, ""));
            let (kind, argument) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
            scenario.add(kind, argument, body);
        }
        scenario
    }

    fn add(&mut self, kind: &str, argument: &str, body: &str) {
        let path = self.root.path().join(argument);
        let pairs = || {
            body.lines()
                .filter_map(|line| line.trim().split_once('='))
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
        };
        match kind {
            "file" => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, body).unwrap();
            }
            "folder" | "untrusted" => self.folders.push(Folder { path, trusted: kind == "folder" }),
            "editor" => {
                let scope = (!argument.is_empty()).then_some(path);
                self.editor.push((scope, serde_json::from_str(body).unwrap()));
            }
            "environment" => self.environment.extend(pairs()),
            "flags" => self.flags.extend(pairs()),
            "for" => self.questions.push(argument.to_owned()),
            other => panic!("no such part: {other}"),
        }
    }

    fn settings(&self) -> Settings {
        let at = |name: &str| Some(self.root.path().join(name));
        let settings = Settings::new(Surroundings {
            folders: Folders { config: at("user"), ..Folders::default() },
            environment: self.environment.clone(),
            home: at("home"),
            working_folder: at("here"),
            flags: self.flags.clone(),
        });
        settings.set_folders(self.folders.clone());
        for (scope, value) in &self.editor {
            settings.set_editor(scope.as_deref(), value.clone());
        }
        settings
    }

    fn run(&self) -> String {
        let settings = self.settings();
        let mut text = String::new();
        for question in &self.questions {
            writeln!(text, "{question}").unwrap();
            let config =
                serde_json::to_value(&*settings.for_path(Some(&self.root.path().join(question)))).unwrap();
            for key in keys() {
                let value = config.pointer(&format!("/{}", key.name.replace('.', "/"))).unwrap();
                if *value != key.default {
                    writeln!(text, "  {} = {value}", key.name).unwrap();
                }
            }
        }
        settings.take_warnings().iter().for_each(|warning| writeln!(text, "! {warning}").unwrap());
        // Asking again says nothing again.
        for question in &self.questions {
            settings.reload();
            settings.for_path(Some(&self.root.path().join(question)));
        }
        assert_eq!(settings.take_warnings(), []);
        text.replace(&*self.root.path().to_string_lossy(), "$")
    }
}

fn check(scenario: &str, expected: Expect) {
    expected.assert_eq(&Scenario::read(scenario).run());
}
