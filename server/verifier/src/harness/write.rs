//! Writes a harness as a CUDA source.

use std::fmt::Write;
use std::path::Path;

use super::model::{Argument, Harness};

/// The part that is the same in every harness.
const SUPPORT: &str = include_str!("support.cuh");

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
         //   nvcc harness.cu -o harness && ./harness [SEED [FOLDER [CALLS]]]\n//\n\
         // It draws the inputs from SEED, runs the kernel once, and prints a summary of each array that the kernel may write.\n\
         // Given a FOLDER, it writes these arrays there too, as NAME.TYPE, without a header.\n\
         // Given CALLS, it runs the kernel so often in a row, to be timed from outside by the difference that more calls make.\n\n",
        subject.kernel,
    );
    // Before the person's file, whose macros may not change what is in here.
    text.push_str(SUPPORT);
    text.push_str("\n// ---- This kernel -------------------------------------------------------------------------------------------------------\n\n");
    // Writing to a string can't fail.
    let _ = write!(
        text,
        "// The file's own `main`, if it has one, is not run.\n#define main main_of_the_file\n#include \"{}\"\n#undef main\n\n",
        subject.path.display()
    );
    text.push_str("int main(int argc, char** argv) {\n");
    text.push_str("  const unsigned long long seed = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1;\n");
    text.push_str("  const char* folder = argc > 2 && *argv[2] ? argv[2] : nullptr;\n");
    text.push_str("  const long calls = argc > 3 ? strtol(argv[3], nullptr, 0) : 1;\n");
    for (is_type, name, value) in &harness.template {
        let _ = if *is_type {
            writeln!(text, "  using {name} = {value};")
        } else {
            writeln!(text, "  constexpr auto {name} = {value};")
        };
    }
    arrays(harness, &mut text);
    scalars(harness, &mut text);
    launch(harness, subject, &mut text);
    text.push_str("  return 0;\n}\n");
    text
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

fn launch(harness: &Harness, subject: &Subject, text: &mut String) {
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
    let fills = harness.arrays().map(|array| format!("array_{}.fill();", array.name)).collect::<Vec<_>>();
    text.push_str("  for (long call = 1; call <= calls; ++call) {\n");
    text.push_str("    // Before the last of several calls all arrays get their first contents back, so that what it leaves can be compared.\n");
    let _ = writeln!(text, "    if (call > 1 && call == calls) {{ {} }}", fills.join(" "));
    let _ = writeln!(text, "    {kernel}<<<grid, block, {shared}>>>({arguments});");
    text.push_str("    stitch::check(cudaGetLastError(), \"the launch\");\n");
    text.push_str("  }\n");
    text.push_str("  stitch::check(cudaDeviceSynchronize(), \"the kernel\");\n");
    for array in harness.arrays().filter(|array| !array.is_const) {
        let _ = writeln!(text, "  array_{}.finish(folder);", array.name);
    }
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
            //   nvcc harness.cu -o harness && ./harness [SEED [FOLDER [CALLS]]]
            //
            // It draws the inputs from SEED, runs the kernel once, and prints a summary of each array that the kernel may write.
            // Given a FOLDER, it writes these arrays there too, as NAME.TYPE, without a header.
            // Given CALLS, it runs the kernel so often in a row, to be timed from outside by the difference that more calls make.

             -------------------------------------------------------------------------------------------------------

            // The file's own `main`, if it has one, is not run.
            #define main main_of_the_file
            #include "/w/k.cu"
            #undef main

            int main(int argc, char** argv) {
              const unsigned long long seed = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1;
              const char* folder = argc > 2 && *argv[2] ? argv[2] : nullptr;
              const long calls = argc > 3 ? strtol(argv[3], nullptr, 0) : 1;
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
              for (long call = 1; call <= calls; ++call) {
                // Before the last of several calls all arrays get their first contents back, so that what it leaves can be compared.
                if (call > 1 && call == calls) { array_y.fill(); array_index.fill(); }
                scale<T, B><<<grid, block, 65536>>>(array_y.device, array_index.device, value_of_by);
                stitch::check(cudaGetLastError(), "the launch");
              }
              stitch::check(cudaDeviceSynchronize(), "the kernel");
              array_y.finish(folder);
              return 0;
            }
        "#]].assert_eq(&format!("{head}{own}"));
    }
}
