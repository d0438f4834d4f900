//! Flags: which are known not to lead a compiler elsewhere, and what nvcc passes on to the C++ compiler.

/// Flags of C++ compilers and of the linker, by how they begin. Others (plugins, other programs, other outputs) leave a build to torch.
const KNOWN: [&str; 21] = [
    "-D",
    "-U",
    "-I",
    "-O",
    "-std=",
    "-f",
    "-m",
    "-W",
    "-g",
    "-w",
    "-pthread",
    "-pipe",
    "-shared",
    "-L",
    "-l",
    "-pedantic",
    "-ansi",
    "-s",
    "-rdynamic",
    "--std=",
    "-isystem",
];
/// Among these, what is not.
const UNKNOWN: [&str; 16] = [
    "-fplugin",
    "-fprofile",
    "-flto",
    "-fdump",
    "-fsyntax",
    "-fmodule",
    "-specs",
    "-save",
    "-Wa,",
    "-Wp,",
    "-wrapper",
    "-fuse-ld",
    "-fauto-profile",
    "-mllvm",
    "-static",
    "-std=c++2b",
];

/// Looks at flags of the C++ compiler or of the linker.
///
/// # Errors
/// One that is not known.
pub(super) fn check_cpp(flags: &[String]) -> Result<(), String> {
    let mut takes_next = false;
    for flag in flags {
        if std::mem::take(&mut takes_next) {
            continue;
        }
        let known = KNOWN.iter().any(|known| flag.starts_with(known))
            && !UNKNOWN.iter().any(|known| flag.starts_with(known));
        // An object or a library by its path.
        let is_file = flag.starts_with('/') && [".a", ".so", ".o"].iter().any(|end| flag.ends_with(end));
        if !known && !is_file {
            return Err(format!("the flag {flag} is not known here"));
        }
        takes_next = matches!(flag.as_str(), "-isystem" | "-I" | "-L" | "-l" | "-D" | "-U");
    }
    Ok(())
}

/// What nvcc does with one of its flags.
enum Use {
    /// It is the C++ compiler's too.
    Both,
    /// The same with the word that follows.
    BothNext,
    /// It is about device code alone.
    Device,
    /// The same with the word that follows.
    DeviceNext,
    /// Flags for the C++ compiler, behind the sign.
    Host,
    /// The same in the word that follows.
    HostNext,
    /// It names the C++ compiler.
    Compiler,
    /// The same with the word that follows.
    CompilerNext,
}

/// Flags of nvcc by their name, up to `=`.
fn use_of(flag: &str) -> Option<Use> {
    let (name, has_value) = flag.split_once('=').map_or((flag, false), |(name, _)| (name, true));
    let next = |one: Use, other: Use| if has_value { one } else { other };
    Some(match name {
        "-isystem" | "-I" | "-D" | "-U" => Use::BothNext,
        "-std" | "--std" if has_value => Use::Both,
        "-O0" | "-O1" | "-O2" | "-O3" | "-g" | "-w" => Use::Both,
        "--compiler-options" | "-Xcompiler" => next(Use::Host, Use::HostNext),
        "-ccbin" | "--compiler-bindir" => next(Use::Compiler, Use::CompilerNext),
        "-static-global-template-stub" | "--static-global-template-stub" if has_value => Use::Device,
        "-Wno-deprecated-gpu-targets" | "-allow-unsupported-compiler" | "--allow-unsupported-compiler" => {
            Use::Device
        }
        "-Xfatbin" | "--fatbin-options" | "-compress-mode" | "--compress-mode" => {
            next(Use::Device, Use::DeviceNext)
        }
        "-gencode" | "--generate-code" | "-arch" | "--gpu-architecture" | "-code" | "--gpu-code"
        | "-Xptxas" | "--ptxas-options" | "-maxrregcount" | "--maxrregcount" | "--threads" | "-t"
        | "-diag-suppress" | "--diag-suppress" | "-Xcudafe" | "-split-compile" | "--split-compile"
        | "-ftz" | "--ftz" | "-prec-div" | "--prec-div" | "-prec-sqrt" | "--prec-sqrt" | "-fmad"
        | "--fmad" => next(Use::Device, Use::DeviceNext),
        "--use_fast_math"
        | "-use_fast_math"
        | "--expt-relaxed-constexpr"
        | "-expt-relaxed-constexpr"
        | "--expt-extended-lambda"
        | "-expt-extended-lambda"
        | "--extended-lambda"
        | "-extended-lambda"
        | "-lineinfo"
        | "--generate-line-info"
        | "--resource-usage"
        | "-res-usage"
        | "--extra-device-vectorization"
        | "-extra-device-vectorization"
        | "-m64"
        | "--restrict"
        | "-restrict"
            if !has_value =>
        {
            Use::Device
        }
        _ if flag.starts_with("-D") || flag.starts_with("-U") || flag.starts_with("-I") => Use::Both,
        _ => return None,
    })
}

/// What of nvcc's flags is about the host's part of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Host {
    /// The C++ compiler, or its folder, if they name one.
    pub compiler: Option<String>,
    /// What it gets.
    pub flags: Vec<String>,
}

/// Looks at flags of nvcc.
///
/// # Errors
/// One that is not known, or two compilers.
pub(super) fn host(flags: &[String]) -> Result<Host, String> {
    let unknown = |flag: &str| format!("the flag {flag} is not known here");
    let mut kept = Vec::new();
    let mut compiler = None;
    let mut words = flags.iter();
    while let Some(flag) = words.next() {
        let mut after = || words.next().ok_or_else(|| unknown(flag));
        match use_of(flag).ok_or_else(|| unknown(flag))? {
            Use::Both => kept.push(flag.clone()),
            Use::BothNext => kept.extend([flag.clone(), after()?.clone()]),
            Use::Device => {}
            Use::DeviceNext => {
                after()?;
            }
            Use::Host => kept.extend(listed(flag.split_once('=').map_or("", |(_, list)| list))),
            Use::HostNext => kept.extend(listed(after()?)),
            this @ (Use::Compiler | Use::CompilerNext) => {
                let named = match this {
                    Use::Compiler => flag.split_once('=').map_or("", |(_, name)| name),
                    _ => after()?,
                };
                // nvcc takes the last one, or refuses both: that depends on its version.
                if compiler.replace(named.to_owned()).is_some_and(|other| other != named) {
                    return Err("nvcc is told of two C++ compilers".to_owned());
                }
            }
        }
    }
    check_cpp(&kept)?;
    Ok(Host { compiler, flags: kept })
}

/// Flags with commas between them, as nvcc takes them for another program.
fn listed(list: &str) -> impl Iterator<Item = String> + '_ {
    list.split([',', ' '])
        .map(|flag| flag.trim_matches(['\'', '"']).to_owned())
        .filter(|flag| !flag.is_empty())
}

/// Names that flags define.
pub(super) fn defined(flags: &[String]) -> Vec<String> {
    let names = flags.iter().filter_map(|flag| flag.strip_prefix("-D"));
    names.map(|text| text.split_once('=').map_or(text, |(name, _)| name).to_owned()).collect()
}

/// The flags as a shell reads them, for a build file.
pub(super) fn quoted(flags: &[String]) -> String {
    shell_words::join(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        shell_words::split(text).unwrap()
    }

    #[test]
    fn the_host_gets_what_nvcc_would_pass_on() {
        let flags = of(
            "-ccbin gcc -DA=1 -isystem /i -I/j --expt-relaxed-constexpr -gencode=arch=compute_90,code=sm_90 -gencode arch=compute_80,code=sm_80 --compiler-options '-fPIC,-Wall' -Xptxas -v -O3 --use_fast_math -std=c++17",
        );
        let host = host(&flags).unwrap();
        assert_eq!(host.flags, of("-DA=1 -isystem /i -I/j -fPIC -Wall -O3 -std=c++17"));
        assert_eq!(host.compiler.as_deref(), Some("gcc"));
        assert_eq!(defined(&flags), ["A"]);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for text in [
            "-rdc=true",
            "-dc",
            "--default-stream per-thread",
            "-ccbin",
            "-ccbin=gcc -ccbin clang",
            "-Xcompiler -ccbin=gcc",
            "-Xcompiler -fplugin=/tmp/x.so",
            "-o /x",
            "-Xptxas",
        ] {
            assert!(host(&of(text)).is_err(), "{text}");
        }
        for text in ["--compiler-bindir=/usr/bin", "--compiler-bindir /usr/bin -ccbin=/usr/bin"] {
            assert_eq!(host(&of(text)).unwrap().compiler.as_deref(), Some("/usr/bin"), "{text}");
        }
        assert_eq!(host(&of("-O3")).unwrap().compiler, None);
        for text in ["-fplugin=x", "@file", "-B/tmp", "-o x", "-wrapper x", "x.cpp"] {
            assert!(check_cpp(&of(text)).is_err(), "{text}");
        }
        assert!(
            check_cpp(&of(
                "-shared -L/t -lc10 -Wl,-rpath,/x /x/liba.a -isystem /y -O3 -fopenmp -march=native"
            ))
            .is_ok()
        );
    }
}
