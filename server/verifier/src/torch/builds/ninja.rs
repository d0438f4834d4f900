//! The build file that `torch.utils.cpp_extension` writes: what torch made of the arguments of `load` and `load_inline`.
//!
//! Since torch itself has read the arguments, found the flags and written the sources, nothing of that has to be done, or can be done
//! otherwise, here.

use std::collections::BTreeMap;

/// How a source becomes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cpp,
    Cuda,
}

/// One source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compile {
    pub kind: Kind,
    pub source: String,
    pub object: String,
}

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BuildFile {
    /// Variables by name; their values as ninja reads them.
    pub variables: BTreeMap<String, String>,
    pub compiles: Vec<Compile>,
    /// What is linked.
    pub output: String,
}

/// Reads one.
///
/// # Errors
/// What it has that is not known here.
pub(super) fn read(text: &str) -> Result<BuildFile, String> {
    let mut file = BuildFile::default();
    for line in text.lines() {
        // Indented lines belong to rules, which are torch's and always the same.
        if line.is_empty()
            || line.starts_with(char::is_whitespace)
            || line.starts_with("rule ")
            || line.starts_with("default ")
        {
            continue;
        }
        if let Some(edge) = line.strip_prefix("build ") {
            read_edge(edge, &mut file)?;
        } else if let Some((name, value)) = line.split_once('=') {
            file.variables.insert(name.trim().to_owned(), value.trim().to_owned());
        } else {
            return Err("its build file has a line that is not known here".to_owned());
        }
    }
    if file.output.is_empty() || file.compiles.is_empty() {
        return Err("its build file links nothing".to_owned());
    }
    Ok(file)
}

fn read_edge(edge: &str, file: &mut BuildFile) -> Result<(), String> {
    let Some((made, rest)) = edge.split_once(": ") else {
        return Err("its build file has a line that is not known here".to_owned());
    };
    // Blanks and colons in names are escaped by a dollar sign.
    if edge.contains('$') || edge.contains('|') {
        return Err("a path has characters that build files escape".to_owned());
    }
    let mut words = rest.split_whitespace();
    let kind = match words.next() {
        Some("compile") => Kind::Cpp,
        Some("cuda_compile") => Kind::Cuda,
        Some("link") => {
            file.output = made.to_owned();
            return Ok(());
        }
        other => return Err(format!("its build file has a step `{}`", other.unwrap_or_default())),
    };
    let (Some(source), None) = (words.next(), words.next()) else {
        return Err("a step of its build file has several sources".to_owned());
    };
    file.compiles.push(Compile { kind, source: source.to_owned(), object: made.to_owned() });
    Ok(())
}

impl BuildFile {
    /// A variable; empty where there is none.
    pub fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    /// The words of a variable with flags.
    ///
    /// # Errors
    /// They can't be told apart.
    pub fn flags(&self, name: &str) -> Result<Vec<String>, String> {
        let value = self.variable(name);
        if value.contains('$') {
            return Err("a flag has a dollar sign".to_owned());
        }
        shell_words::split(value).map_err(|_| "a flag has an open quote".to_owned())
    }

    /// All flags that nvcc gets, with those that it finds in its variables before and behind.
    ///
    /// # Errors
    /// They can't be told apart.
    pub fn nvcc_flags(&self, [before, behind]: &[Vec<String>; 2]) -> Result<Vec<String>, String> {
        Ok([before.clone(), self.flags("cuda_cflags")?, self.flags("cuda_post_cflags")?, behind.clone()]
            .concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_torch_writes_is_read() {
        let text = "ninja_required_version = 1.3\ncxx = c++\ncflags = -DA=\\\"b\\\" '-O2 x'\n\nrule compile\n  command = $cxx -c $in\n\nbuild main.o: compile /b/main.cpp\nbuild cuda.cuda.o: cuda_compile /b/cuda.cu\n\nbuild x.so: link main.o cuda.cuda.o\n\ndefault x.so\n";
        let file = read(text).unwrap();
        assert_eq!(file.output, "x.so");
        assert_eq!(file.flags("cflags").unwrap(), ["-DA=\"b\"", "-O2 x"]);
        assert_eq!(
            file.compiles[1],
            Compile { kind: Kind::Cuda, source: "/b/cuda.cu".into(), object: "cuda.cuda.o".into() }
        );
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for text in [
            "",
            "build x.so: link\n",
            "build a.o: sycl_compile a\nbuild x.so: link a.o\n",
            "build a.o: compile a$ b\nbuild x.so: link a.o\n",
            "subninja y\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
