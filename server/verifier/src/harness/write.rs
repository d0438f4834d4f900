//! Writes a harness as a CUDA source.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::model::{Argument, Array, Harness};

/// The part that is the same in every harness.
const SUPPORT: &str = include_str!("support.cuh");
/// The part that is the same in every harness that is timed.
const TIMED: &str = include_str!("timed.cuh");

/// What a harness is written around: the reference's file or the candidate's.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The file with the kernel, absolute.
    pub path: &'a Path,
    /// The kernel's name in it, with its namespaces.
    pub kernel: &'a str,
    /// Blocks and threads, where the candidate's own launch says others than the reference's.
    pub configuration: Option<([u64; 3], [u64; 3], u64)>,
}

/// The text of a harness around a kernel.
pub fn write(harness: &Harness, subject: &Subject) -> String {
    let file = subject.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut text = format!(
        "// A harness for the kernel `{}` of {file}. It is an ordinary CUDA program: read it, edit it, keep it.\n//\n\
         //   nvcc harness.cu -o harness && ./harness [SEED [FOLDER]]\n//\n\
         // It draws the inputs from SEED, runs the kernel once, and prints a summary of each array that the kernel may write.\n\
         // Given a FOLDER, it writes these arrays there too, as NAME.TYPE, without a header.\n\n",
        subject.kernel,
    );
    // Before the person's file, whose macros may not change what is in here.
    text.push_str(SUPPORT);
    include(subject, &mut text);
    text.push_str("int main(int argc, char** argv) {\n");
    text.push_str("  const unsigned long long seed = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1;\n");
    text.push_str("  const char* folder = argc > 2 && *argv[2] ? argv[2] : nullptr;\n");
    inputs(harness, &mut text);
    let launch = launch(harness, subject, &mut text);
    let _ = writeln!(text, "  {launch}");
    text.push_str("  stitch::check(cudaGetLastError(), \"the launch\");\n");
    text.push_str("  stitch::check(cudaDeviceSynchronize(), \"the kernel\");\n");
    for array in written(harness) {
        let _ = writeln!(text, "  array_{}.finish(folder);", array.name);
    }
    text.push_str("  return 0;\n}\n");
    text
}

/// The text of a harness that makes as many calls as it is told to over a socket, for [`crate::measure`]: `harness SEED SOCKET`.
///
/// The file's macros end where the file does, so that they change nothing of what follows but the names and types that
/// are the file's own.
pub fn write_timed(harness: &Harness, subject: &Subject) -> String {
    let mut text = format!("{SUPPORT}\n{TIMED}");
    include(subject, &mut text);
    let mut main = String::from("int main(int, char** argv) {\n");
    main.push_str("  const unsigned long long seed = strtoull(argv[1], nullptr, 0);\n");
    inputs(harness, &mut main);
    for array in harness.arrays() {
        let _ = writeln!(
            main,
            "  ::stitch::First<{}> first_{}(array_{});",
            array.element, array.name, array.name
        );
    }
    let launch = launch(harness, subject, &mut main);
    let list = |each: &dyn Fn(&Array) -> String, arrays: &mut dyn Iterator<Item = &Array>| {
        arrays.map(|array| format!(" {}", each(array))).collect::<String>()
    };
    let fills = list(&|array| format!("first_{}.back();", array.name), &mut harness.arrays());
    let saves = list(&|array| format!("array_{}.finish(folder);", array.name), &mut written(harness));
    let _ = writeln!(main, "  auto fill = [&] {{{fills} }};\n  auto call = [&] {{ {launch} }};");
    let _ = writeln!(main, "  auto save = [&](const char* folder) {{{saves} }};");
    main.push_str("  return ::stitch::Timed::obey(argv[2], fill, call, save);\n}\n");
    for word in own_words(&main, harness, subject) {
        let _ = writeln!(text, "#undef {word}");
    }
    text.push('\n');
    text.push_str(&main);
    text
}

/// The part that holds the person's file.
fn include(subject: &Subject, text: &mut String) {
    text.push_str("\n// ---- This kernel -------------------------------------------------------------------------------------------------------\n\n");
    // Writing to a string can't fail.
    let _ = write!(
        text,
        "// The file's own `main`, if it has one, is not run.\n#define main main_of_the_file\n#include \"{}\"\n#undef main\n\n",
        subject.path.display()
    );
}

/// The names in a harness's `main` that are not those of the person's file.
fn own_words<'t>(main: &'t str, harness: &'t Harness, subject: &'t Subject) -> BTreeSet<&'t str> {
    let mut theirs: Vec<&str> = vec![subject.kernel];
    theirs.extend(harness.template.iter().map(|(_, _, value)| value.as_str()));
    for argument in &harness.arguments {
        match argument {
            Argument::Array(array) => {
                theirs.extend([array.element.as_str(), array.count.as_str()]);
                theirs.extend(array.limit.as_deref());
            }
            Argument::Scalar(scalar) => theirs.extend([scalar.ty.as_str(), scalar.value.as_str()]),
        }
    }
    let theirs: BTreeSet<&str> = theirs.into_iter().flat_map(words).collect();
    // A comment names lines of their file.
    main.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(words)
        .filter(|word| !theirs.contains(word))
        .collect()
}

/// What could be the name of a macro.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c| !is_of_name(c)).filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()))
}

/// The arrays that a kernel may write.
fn written(harness: &Harness) -> impl Iterator<Item = &Array> {
    harness.arrays().filter(|array| !array.is_const)
}

/// Everything that is passed, drawn or said.
fn inputs(harness: &Harness, text: &mut String) {
    for (is_type, name, value) in &harness.template {
        let _ = if *is_type {
            writeln!(text, "  using {name} = {value};")
        } else {
            writeln!(text, "  constexpr auto {name} = {value};")
        };
    }
    arrays(harness, text);
    scalars(harness, text);
}

fn arrays(harness: &Harness, text: &mut String) {
    let counts: Vec<_> = harness.arrays().map(|array| (array, format!("count_of_{}", array.name))).collect();
    for (array, count) in &counts {
        let _ = writeln!(text, "  const size_t {count} = {};  // {}", array.count, array.from);
    }
    let _ =
        writeln!(text, "  // Integers may be indices, so they stay below the length of the shortest array.");
    let _ = writeln!(text, "  size_t shortest = size_t(1) << 31;");
    let list = counts.iter().map(|(_, count)| count.clone()).collect::<Vec<_>>().join(", ");
    let _ =
        writeln!(text, "  for (size_t count : {{{list}}}) shortest = count < shortest ? count : shortest;");
    for (index, (array, count)) in counts.iter().enumerate() {
        let limit = array.limit.clone().unwrap_or_else(|| "shortest".to_owned());
        let _ = writeln!(
            text,
            "  stitch::Array<{}> array_{}(\"{}\", {count}, stitch::draw(seed, {index}), {limit});",
            array.element, array.name, array.name
        );
    }
}

fn scalars(harness: &Harness, text: &mut String) {
    for argument in &harness.arguments {
        if let Argument::Scalar(scalar) = argument {
            let braced = if scalar.value.starts_with('{') {
                scalar.value.clone()
            } else {
                format!("({})({})", scalar.ty, scalar.value)
            };
            let _ = writeln!(
                text,
                "  const {} value_of_{} = {braced};  // {}",
                scalar.ty, scalar.name, scalar.from
            );
        }
    }
}

/// Writes the shape of the launch, and gives the launch itself, a statement.
fn launch(harness: &Harness, subject: &Subject, text: &mut String) -> String {
    let (grid, block, shared) =
        subject.configuration.unwrap_or((harness.grid, harness.block, harness.shared));
    let sizes = |sizes: [u64; 3]| sizes.map(|size| size.to_string()).join(", ");
    let _ =
        writeln!(text, "  const dim3 grid({}), block({});  // {}", sizes(grid), sizes(block), harness.from);
    let names = harness.template.iter().map(|(_, name, _)| name.clone()).collect::<Vec<_>>().join(", ");
    let template = if names.is_empty() { String::new() } else { format!("<{names}>") };
    let kernel = format!("{}{template}", subject.kernel);
    const UNASKED: u64 = 48 << 10;
    if shared > UNASKED {
        let _ = writeln!(
            text,
            "  stitch::check(cudaFuncSetAttribute({kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, {shared}), \"shared memory\");"
        );
    }
    let arguments = harness.arguments.iter().map(|argument| match argument {
        Argument::Array(array) => format!("array_{}.device", array.name),
        Argument::Scalar(scalar) => format!("value_of_{}", scalar.name),
    });
    let arguments = arguments.collect::<Vec<_>>().join(", ");
    format!("{kernel}<<<grid, block, {shared}>>>({arguments});")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use stitch_analysis::{Analysis, Language};

    use super::super::{Answers, find, plan};
    use super::*;

    #[test]
    fn a_harness_reads_as_a_person_would_write_it() {
        let source = "template <typename T, int B> __global__ void scale(T* y, const int* index, T by) {}\n\
            void f() { float* y; int* i; cudaMalloc(&y, 4096); cudaMalloc(&i, 400); scale<float, 64><<<dim3(4, 2), 64, 65536>>>(y, i, 2.5f); }\n";
        let analysis = Analysis::of(Language::Cuda, source);
        let (kernel, _) = find(analysis.outline(), "k.cu", "scale").unwrap();
        let harness = plan(analysis.outline(), source, kernel, None, &Answers::default()).unwrap();
        let text =
            write(&harness, &Subject { path: Path::new("/w/k.cu"), kernel: "scale", configuration: None });
        let (head, rest) = text.split_once("// ---- What every").unwrap();
        let (_, own) = rest.split_once("// ---- This kernel").unwrap();
        expect![[r#"
            // A harness for the kernel `scale` of k.cu. It is an ordinary CUDA program: read it, edit it, keep it.
            //
            //   nvcc harness.cu -o harness && ./harness [SEED [FOLDER]]
            //
            // It draws the inputs from SEED, runs the kernel once, and prints a summary of each array that the kernel may write.
            // Given a FOLDER, it writes these arrays there too, as NAME.TYPE, without a header.

             -------------------------------------------------------------------------------------------------------

            // The file's own `main`, if it has one, is not run.
            #define main main_of_the_file
            #include "/w/k.cu"
            #undef main

            int main(int argc, char** argv) {
              const unsigned long long seed = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1;
              const char* folder = argc > 2 && *argv[2] ? argv[2] : nullptr;
              using T = float;
              constexpr auto B = 64;
              const size_t count_of_y = 4096 / sizeof(T);  // allocated before the launch at line 2
              const size_t count_of_index = 400 / sizeof(int);  // allocated before the launch at line 2
              // Integers may be indices, so they stay below the length of the shortest array.
              size_t shortest = size_t(1) << 31;
              for (size_t count : {count_of_y, count_of_index}) shortest = count < shortest ? count : shortest;
              stitch::Array<T> array_y("y", count_of_y, stitch::draw(seed, 0), shortest);
              stitch::Array<int> array_index("index", count_of_index, stitch::draw(seed, 1), shortest);
              const T value_of_by = (T)(2.5f);  // the launch at line 2
              const dim3 grid(4, 2, 1), block(64, 1, 1);  // the launch at line 2
              stitch::check(cudaFuncSetAttribute(scale<T, B>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536), "shared memory");
              scale<T, B><<<grid, block, 65536>>>(array_y.device, array_index.device, value_of_by);
              stitch::check(cudaGetLastError(), "the launch");
              stitch::check(cudaDeviceSynchronize(), "the kernel");
              array_y.finish(folder);
              return 0;
            }
        "#]].assert_eq(&format!("{head}{own}"));
    }

    #[test]
    fn no_macro_of_the_file_changes_what_is_timed() {
        let source = "#define REAL float\n#define SIZE 4096\n__global__ void scale(REAL* y, const int* seed, REAL by) {}\n\
            void f() { REAL* y; int* i; cudaMalloc(&y, SIZE); cudaMalloc(&i, 400); scale<<<4, 64>>>(y, i, 2.5f); }\n";
        let analysis = Analysis::of(Language::Cuda, source);
        let (kernel, _) = find(analysis.outline(), "k.cu", "scale").unwrap();
        let harness = plan(analysis.outline(), source, kernel, None, &Answers::default()).unwrap();
        let subject = Subject { path: Path::new("/w/k.cu"), kernel: "scale", configuration: None };
        let text = write_timed(&harness, &subject);
        let (before, after) = text.split_once("#include \"/w/k.cu\"").unwrap();
        assert!(
            before.contains("cudaDeviceSynchronize()") && !after.contains("cudaDeviceSynchronize()"),
            "{after}"
        );
        let (undefined, main) = after.split_once("int main(int, char** argv) {").unwrap();
        let undefined: BTreeSet<&str> =
            undefined.lines().filter_map(|line| line.strip_prefix("#undef ")).collect();
        for word in
            ["main", "obey", "stitch", "array_seed", "value_of_by", "return", "dim3", "strtoull", "call"]
        {
            assert!(undefined.contains(word), "{word} is not: {undefined:?}");
        }
        for word in ["scale", "REAL"] {
            assert!(!undefined.contains(word), "{word} is, and the file needs it");
        }
        let expected = "  auto fill = [&] { first_y.back(); first_seed.back(); };\n  \
            auto call = [&] { scale<<<grid, block, 0>>>(array_y.device, array_seed.device, value_of_by); };\n  \
            auto save = [&](const char* folder) { array_y.finish(folder); };\n  \
            return ::stitch::Timed::obey(argv[2], fill, call, save);\n}\n";
        assert!(main.ends_with(expected), "{main}");
    }
}
