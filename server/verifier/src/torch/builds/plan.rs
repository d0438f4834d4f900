//! How an extension is built: the files to write, and a build file of our own. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::flags;
use super::headers::{self, Prelude};
use super::ninja::{BuildFile, Compile, Kind};
use super::split::{Split, split};

/// The file that is built.
pub(super) const OUTPUT: &str = "extension.so";
/// Since this version of CUDA the stubs of kernels that are templates are seen by their own object alone, unless nvcc is told otherwise.
const STATIC_STUBS: u32 = 13_000;

/// What of this machine a plan depends on.
pub(super) struct Tools<'a> {
    /// `CUDA_VERSION` of the toolkit; 0 where there is none.
    pub cuda_version: u32,
    /// The C++ compiler that nvcc runs.
    pub host_cxx: &'a str,
    /// Flags from nvcc's variables: before its own, and behind them.
    pub nvcc_flags: &'a [Vec<String>; 2],
    /// Where compiled headers lie.
    pub prelude: &'a (dyn Fn(&Compiled) -> PathBuf + Sync),
}

/// Headers, and what they are compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compiled {
    pub prelude: Prelude,
    /// The C++ compiler.
    pub cxx: String,
    /// Its flags.
    pub flags: Vec<String>,
}

/// A build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Files by name, in the folder of the build.
    pub files: BTreeMap<String, String>,
    /// The build file.
    pub ninja: String,
    /// Compiled headers that have to be there.
    pub preludes: Vec<Compiled>,
    /// Sources that nvcc compiles whole, with the reason.
    pub whole: Vec<(String, String)>,
    /// Sources that were taken apart.
    pub apart: usize,
}

/// The rules. A library may ask for what nobody has until it is called, so the linker does not miss a kernel; the last rule does.
const RULES: &str = r#"
rule cpp
  command = $compiler -MD -MF $out.d $before $flags -c $in -o $out $after
rule device
  command = $nvcc --generate-dependencies-with-compile --dependency-output $out.d $flags -c $in -o $out $after
rule names
  command = nm -uC $in | sed -n -E 's/^ +[Uw] (void ([A-Za-z_0-9]+::)*($kernels)<.*)$$/template __global__ \1;/p' > $out
rule link
  command = $cxx $in $ldflags -o $out
rule link_kernels
  command = $cxx $in $ldflags -o $out && ! nm -uC $out | grep -v -E ' (at|torch|c10|pybind11)::' | grep -E '^ +[Uw] (void )?([A-Za-z_0-9]+::)*($kernels)[(<]'

"#;

/// Makes a plan.
///
/// # Errors
/// Why torch has to build it.
pub(super) fn plan(
    file: &BuildFile,
    sources: &BTreeMap<String, String>,
    tools: &Tools<'_>,
) -> Result<Plan, String> {
    let mut plan = Plan::default();
    let cpp = file.flags("cflags")?;
    flags::check_cpp(&cpp)?;
    flags::check_cpp(&file.flags("post_cflags")?)?;
    flags::check_cpp(&file.flags("ldflags")?)?;
    plan.ninja = format!(
        "cxx = {}\nnvcc = {}\nldflags = {}\n{RULES}",
        file.variable("cxx"),
        file.variable("nvcc"),
        file.variable("ldflags")
    );
    let mut objects = Vec::new();
    let mut kernels = BTreeSet::new();
    for (number, compile) in file.compiles.iter().enumerate() {
        let text =
            sources.get(&compile.source).ok_or_else(|| format!("{} was not passed on", compile.source))?;
        let mut step = Step { plan: &mut plan, file, tools, number, compile, text, kernels: &mut kernels };
        let made = match compile.kind {
            Kind::Cpp => step.cpp(&cpp)?,
            Kind::Cuda => step.cuda()?,
        };
        objects.extend(made);
    }
    let (rule, kernels) = if kernels.is_empty() {
        ("link", String::new())
    } else {
        let names: Vec<String> = kernels.into_iter().collect();
        ("link_kernels", format!("  kernels = {}\n", names.join("|")))
    };
    let _ = write!(plan.ninja, "build {OUTPUT}: {rule} {}\n{kernels}default {OUTPUT}\n", objects.join(" "));
    Ok(plan)
}

/// One source.
struct Step<'a> {
    plan: &'a mut Plan,
    file: &'a BuildFile,
    tools: &'a Tools<'a>,
    number: usize,
    compile: &'a Compile,
    text: &'a str,
    /// Kernels of the sources that were taken apart so far.
    kernels: &'a mut BTreeSet<String>,
}

impl Step<'_> {
    /// The name of a file of this source.
    fn name(&self, end: &str) -> String {
        format!("{}{end}", self.number)
    }

    fn folder(&self) -> String {
        let folder = Path::new(&self.compile.source).parent().unwrap_or(Path::new("/"));
        folder.display().to_string()
    }

    /// The text under its own name, for messages and `__FILE__`.
    fn with_name(&self, text: &str) -> String {
        format!("#line 1 \"{}\"\n{text}", self.compile.source.replace('\\', "\\\\").replace('"', "\\\""))
    }

    /// A step of the C++ compiler.
    fn compile_cpp(
        &mut self,
        source: &str,
        text: &str,
        prelude: Option<(Prelude, Vec<&'static str>)>,
        flags: &[String],
        after: &str,
        launches: bool,
    ) -> String {
        let object = format!("{source}.o");
        // What launches stands in a CUDA text, whose host part nvcc's own C++ compiler compiles.
        let cxx = if launches { self.tools.host_cxx } else { self.file.variable("cxx") };
        let mut before = Vec::new();
        if let Some((prelude, more)) = prelude {
            let compiled = Compiled { prelude, cxx: cxx.to_owned(), flags: without_name(flags) };
            before.extend(["-I".to_owned(), (self.tools.prelude)(&compiled).display().to_string()]);
            for file in [prelude.file()].iter().chain(&more) {
                before.extend(["-include".to_owned(), (*file).to_owned()]);
            }
            if !self.plan.preludes.contains(&compiled) {
                self.plan.preludes.push(compiled);
            }
        }
        if launches {
            before.extend(["-include".to_owned(), headers::LAUNCHING_FILE.to_owned()]);
            self.plan.files.insert(headers::LAUNCHING_FILE.to_owned(), headers::LAUNCHING.to_owned());
        }
        before.extend(["-iquote".to_owned(), self.folder()]);
        self.plan.files.insert(source.to_owned(), self.with_name(text));
        let (before, flags) = (flags::quoted(&before), flags::quoted(flags));
        let _ = write!(
            self.plan.ninja,
            "build {object}: cpp {source}\n  compiler = {cxx}\n  before = {before}\n  flags = {flags}\n  after = {after}\n"
        );
        object
    }

    fn cpp(&mut self, flags: &[String]) -> Result<Vec<String>, String> {
        let prelude = headers::prelude(self.text, false, true);
        let after = self.file.variable("post_cflags").to_owned();
        let source = self.name(".cpp");
        Ok(vec![self.compile_cpp(&source, self.text, prelude, flags, &after, false)])
    }

    fn cuda(&mut self) -> Result<Vec<String>, String> {
        if !self.file.variable("cuda_dlink_post_cflags").is_empty() {
            return Err("device code is linked across files".to_owned());
        }
        let mut flags = self.file.flags("cuda_cflags")?;
        flags.extend(self.file.flags("cuda_post_cflags")?);
        // nvcc itself reads its variables; the C++ compiler does not.
        let all = self.file.nvcc_flags(self.tools.nvcc_flags)?;
        let host_flags = flags::host(&all)?.flags;
        match self.split(&all) {
            Ok(split) => Ok(self.apart(&split, &flags, &host_flags)),
            Err(reason) => {
                self.plan.whole.push((self.compile.source.clone(), reason));
                let (source, object) = (self.name(".cu"), self.name(".o"));
                let mut flags = flags;
                // A header of its own lies beside the source.
                flags.extend(["-I".to_owned(), self.folder()]);
                self.plan.files.insert(source.clone(), self.with_name(self.text));
                self.device(&source, &object, &flags, "");
                Ok(vec![object])
            }
        }
    }

    /// The parts. Of kernels of one name in two sources the linker would take either.
    fn split(&mut self, flags: &[String]) -> Result<Split, String> {
        let split = split(self.text, self.number, &flags::defined(flags))?;
        if let Some(name) = split.kernels.iter().find(|name| self.kernels.contains(*name)) {
            return Err(format!("another source has a kernel `{name}` too"));
        }
        self.kernels.extend(split.kernels.iter().cloned());
        Ok(split)
    }

    fn device(&mut self, source: &str, object: &str, flags: &[String], needs: &str) {
        let flags = flags::quoted(flags);
        let _ = write!(self.plan.ninja, "build {object}: device {source}{needs}\n  flags = {flags}\n");
    }

    /// A source in two parts. Templates are instantiated for what the host part asks the linker for.
    fn apart(&mut self, split: &Split, flags: &[String], host_flags: &[String]) -> Vec<String> {
        self.plan.apart += 1;
        let source = self.name(".host.cpp");
        let prelude = headers::prelude(self.text, true, split.binds);
        let host = self.compile_cpp(&source, &split.host, prelude, host_flags, "", true);
        let has_half = ["Half", "BFloat16", "HALF", "BFLOAT16", "ALL_TYPES_AND", "TYPES_AND"]
            .iter()
            .any(|word| self.text.contains(word));
        let (source, object) = (self.name(".device.cu"), self.name(".device.o"));
        let mut text = headers::device_text(has_half) + &self.with_name(&split.device);
        let mut flags = flags.to_vec();
        let mut needs = String::new();
        if !split.templates.is_empty() {
            let list = self.name(".templates.h");
            let _ = write!(
                self.plan.ninja,
                "build {list}: names {host}\n  kernels = {}\n",
                split.templates.join("|")
            );
            let _ = write!(text, "\n#include \"{list}\"\n");
            needs = format!(" | {list}");
            if self.tools.cuda_version >= STATIC_STUBS {
                flags.push("-static-global-template-stub=false".to_owned());
            }
        }
        self.plan.files.insert(source.clone(), text);
        self.device(&source, &object, &flags, &needs);
        vec![host, object]
    }
}

/// Flags without what differs between extensions and no header uses.
fn without_name(flags: &[String]) -> Vec<String> {
    flags.iter().filter(|flag| !flag.starts_with("-DTORCH_EXTENSION_NAME=")).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torch::builds::ninja;

    fn made(cuda: &str, version: u32) -> Result<Plan, String> {
        let text = "cxx = c++\nnvcc = /n/nvcc\ncflags = -DTORCH_EXTENSION_NAME=x -std=c++17\npost_cflags = \ncuda_cflags = -DTORCH_EXTENSION_NAME=x --expt-relaxed-constexpr -std=c++17\ncuda_post_cflags = \nldflags = -shared -lc10\nbuild main.o: compile /b/main.cpp\nbuild cuda.cuda.o: cuda_compile /b/cuda.cu\nbuild x.so: link main.o cuda.cuda.o\n";
        let main = "#include <torch/extension.h>\nvoid f();\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n";
        let sources = [("/b/main.cpp", main), ("/b/cuda.cu", cuda)]
            .map(|(name, text)| (name.to_owned(), text.to_owned()));
        let prelude = |compiled: &Compiled| Path::new("/p").join(compiled.prelude.file());
        let nvcc_flags = [Vec::new(), vec!["-DMORE".to_owned()]];
        let tools =
            Tools { cuda_version: version, host_cxx: "gcc", nvcc_flags: &nvcc_flags, prelude: &prelude };
        plan(&ninja::read(text)?, &sources.into(), &tools)
    }

    #[test]
    fn a_plain_extension_has_three_objects_that_need_not_wait() {
        let plan =
            made("#include <torch/types.h>\n__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }\n", 13_000)
                .unwrap();
        assert!(
            plan.ninja.contains(
                "build extension.so: link_kernels 0.cpp.o 1.host.cpp.o 1.device.o\n  kernels = k\n"
            ),
            "{}",
            plan.ninja
        );
        assert!(plan.ninja.contains("build 1.device.o: device 1.device.cu\n"));
        assert!(!plan.ninja.contains("static-global"));
        assert_eq!((plan.apart, plan.whole.len()), (1, 0));
        let preludes: Vec<_> =
            plan.preludes.iter().map(|one| (one.prelude, one.cxx.as_str(), one.flags.join(" "))).collect();
        assert_eq!(
            preludes,
            [
                (Prelude::Bound, "c++", "-std=c++17".to_owned()),
                (Prelude::Bare, "gcc", "-std=c++17 -DMORE".to_owned())
            ]
        );
        // nvcc reads its variables itself.
        assert!(plan.ninja.contains(
            "device 1.device.cu\n  flags = '-DTORCH_EXTENSION_NAME=x' --expt-relaxed-constexpr '-std=c++17'\n"
        ));
        assert!(plan.files["1.host.cpp"].starts_with("#line 1 \"/b/cuda.cu\"\n"));
    }

    #[test]
    fn templates_wait_for_what_is_asked_for() {
        let text = "template <class T> __global__ void k(T) {}\nvoid f() { k<int><<<1, 1>>>(1); }\n";
        let plan = made(text, 13_000).unwrap();
        assert!(plan.ninja.contains("build 1.templates.h: names 1.host.cpp.o\n  kernels = k\nbuild 1.device.o: device 1.device.cu | 1.templates.h\n"), "{}", plan.ninja);
        assert!(plan.ninja.contains("-static-global-template-stub=false"));
        assert!(!made(text, 12_080).unwrap().ninja.contains("-static-global"));
        assert!(plan.files["1.device.cu"].ends_with("#include \"1.templates.h\"\n"));
    }

    #[test]
    fn what_is_not_taken_apart_says_why() {
        let plan = made("#include \"mine.cuh\"\n__global__ void k() {}\n", 13_000).unwrap();
        assert_eq!(plan.whole, [("/b/cuda.cu".to_owned(), "it includes mine.cuh".to_owned())]);
        assert!(plan.ninja.contains("build 1.o: device 1.cu\n"));
        assert!(plan.files["1.cu"].contains("mine.cuh"));
    }
}
