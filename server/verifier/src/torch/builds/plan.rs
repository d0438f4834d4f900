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
    /// Where the compiled headers of a prelude lie, for these flags of the C++ compiler.
    pub prelude: &'a dyn Fn(Prelude, &[String]) -> PathBuf,
}

/// A build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Files by name, in the folder of the build.
    pub files: BTreeMap<String, String>,
    /// The build file.
    pub ninja: String,
    /// Preludes that have to be there, with the flags that they are compiled with.
    pub preludes: Vec<(Prelude, Vec<String>)>,
    /// Sources that nvcc compiles whole, with the reason.
    pub whole: Vec<(String, String)>,
    /// Sources that were taken apart.
    pub apart: usize,
}

/// The rules. A library may ask for what nobody has until it is called, so the linker does not miss a kernel; the last rule does.
const RULES: &str = r#"
rule cpp
  command = $cxx -MD -MF $out.d $before $flags -c $in -o $out $after
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
        let mut before = Vec::new();
        if let Some((prelude, more)) = prelude {
            let flags = without_name(flags);
            before.extend(["-I".to_owned(), (self.tools.prelude)(prelude, &flags).display().to_string()]);
            for file in [prelude.file()].iter().chain(&more) {
                before.extend(["-include".to_owned(), (*file).to_owned()]);
            }
            if !self
                .plan
                .preludes
                .iter()
                .any(|(known, known_flags)| (*known, known_flags) == (prelude, &flags))
            {
                self.plan.preludes.push((prelude, flags));
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
            "build {object}: cpp {source}\n  before = {before}\n  flags = {flags}\n  after = {after}\n"
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
        let host_flags = flags::host_flags(&flags)?;
        match self.split(&flags) {
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
        let prelude = |prelude: Prelude, _: &[String]| Path::new("/p").join(prelude.file());
        plan(&ninja::read(text)?, &sources.into(), &Tools { cuda_version: version, prelude: &prelude })
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
            plan.preludes.iter().map(|(prelude, flags)| (*prelude, flags.join(" "))).collect();
        assert_eq!(
            preludes,
            [(Prelude::Bound, "-std=c++17".to_owned()), (Prelude::Bare, "-std=c++17".to_owned())]
        );
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
