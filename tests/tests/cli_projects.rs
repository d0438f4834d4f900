//! `stitchcuda check` in whole projects: what holds for a file does not depend on where the command was started, and a result from
//! the cache is the one that a compile would give now.

#![cfg(unix)]

use serde_json::json;
use stitch_tests::cli::{Folder, findings, finish, kernel};

#[test]
fn a_header_that_appears_where_one_was_looked_for_is_compiled() {
    let folder = Folder::with(&[
        ("a.cu", "#include \"h.cuh\"\n#if __has_include(<opt.h>)\n#include <opt.h>\n#endif\n__global__ void k(float* a) { a[0] = V; }\n"),
        ("i2/h.cuh", "#define V 1\n"),
        ("i1/other.h", ""),
    ])
    .unwrap();
    let entry =
        json!([{ "directory": folder.path().unwrap(), "command": "nvcc -Ii1 -Ii2 -c a.cu", "file": "a.cu" }]);
    folder.write("compile_commands.json", entry.to_string()).unwrap();
    let status = || folder.check(&["a.cu"]).unwrap().0.status;
    assert_eq!(status(), Some(0));
    folder.write("i1/h.cuh", "#define V shadow\n").unwrap();
    assert_eq!(status(), Some(1), "a header earlier on the path");
    folder.write("i1/h.cuh", "#define V 2\n").unwrap();
    assert_eq!(status(), Some(0));
    folder.write("i2/opt.h", "#undef V\n#define V optional\n").unwrap();
    assert_eq!(status(), Some(1), "a header that is asked for");
    std::fs::remove_file(folder.path().unwrap().join("i2/opt.h")).unwrap();
    assert_eq!(status(), Some(0), "and is gone again");
}

#[test]
fn a_file_is_the_same_from_everywhere() {
    let folder = Folder::with(&[
        ("p/.git/HEAD", ""),
        ("p/inc/hh/h.h", "#define H 1\n"),
        (
            "p/src/k.cu",
            "#include <hh/h.h>\n__global__ void k(float* a) { a[0] = H; a[threadIdx.x*32] = 1; }\n",
        ),
        ("p/stitchcuda.toml", "[diagnostics.severity]\n\"static/*\" = \"off\"\n"),
        ("p/src/app/stitchcuda.toml", "[nvcc]\nextraFlags = [\"-DX=1\", \"-I../../x\"]\n"),
        ("p/src/app/a.cu", "#include <hh/h.h>\n__global__ void k(float* a) { a[0] = H + X; }\n"),
        ("elsewhere/x", ""),
    ])
    .unwrap();
    let root = folder.path().unwrap();
    for file in ["k.cu", "app/a.cu"] {
        let mut reports = Vec::new();
        for from in ["p", "p/src", "p/src/app", "elsewhere"] {
            let absolute = root.join("p/src").join(file).display().to_string();
            let mut command = folder.command(&["check", "--format", "json", &absolute]).unwrap();
            let finished = finish(command.current_dir(root.join(from))).unwrap();
            let report = finished.json().unwrap();
            assert_eq!((finished.status, findings(&report, true).len()), (Some(0), 0), "{from}: {report}");
            reports.push((report["files"][0]["kernels"].clone(), report["files"][0]["notCompiled"].clone()));
        }
        let mut command = folder.command(&["check", "--format", "json", file]).unwrap();
        let finished = finish(command.current_dir(root.join("p/src"))).unwrap();
        assert_eq!(finished.status, Some(0), "{}", finished.out);
        assert!(reports.iter().all(|report| *report == reports[0]));
    }
}

#[test]
fn headers_beside_the_folders_above_are_found() {
    let folder = Folder::with(&[
        ("samples/Common/helper.h", "#define HELP 1\n"),
        ("samples/0_Intro/add/add.cu", "#include <helper.h>\n__global__ void k(float* a) { a[0] = HELP; }\n"),
    ])
    .unwrap();
    let (finished, report) = folder.check(&["samples/0_Intro/add/add.cu"]).unwrap();
    assert_eq!((finished.status, findings(&report, false).len()), (Some(0), 0), "{report}");
    assert!(report["notes"].to_string().contains("helper.h was found in"), "{report}");
}

#[test]
fn an_error_behind_a_line_directive_stands_in_the_file_that_can_be_opened() {
    let text = "__global__ void ok(float* a) { a[0] = 1; }\n#line 500 \"generated.cu\"\n\
                __global__ void k3(float* a) { int unused; a[0] = \"x\"; }\n";
    let folder = Folder::with(&[("k.cu", text)]).unwrap();
    let (finished, report) = folder.check(&["k.cu"]).unwrap();
    assert_eq!(finished.status, Some(1), "{report}");
    let found = findings(&report, false);
    assert_eq!(found, ["k.cu:3:36 warning nvcc/warning", "k.cu:3:49 error nvcc/error"], "{report}");
}

const KERNELS: &str = r#"
#define DEFK(name, op) __global__ void name##_kernel(float* a) { a[threadIdx.x] = a[threadIdx.x] op 2.f; }
DEFK(add, +) DEFK(mul, *)
extern "C" __global__ void cname(float* a) { a[0] = 1; }
namespace ns { __global__ void cname(float* a, int) { a[0] = 1; } }
__global__ void twice(float* a) { a[0] = 1; }
int main() {
  float* a = nullptr;
  cname<<<1, 192>>>(a); ns::cname<<<1, dim3(8, 8)>>>(a, 0);
  twice<<<1, 64>>>(a);
  twice<<<1, 1024, 65536>>>(a);
  add_kernel<<<1, 256>>>(a); mul_kernel<<<1, 512>>>(a);
}
"#;

#[test]
fn each_kernel_has_its_own_launches_and_all_of_them() {
    let folder = Folder::with(&[("k.cu", KERNELS)]).unwrap();
    let (finished, report) = folder.check(&["--arch", "sm_90", "k.cu"]).unwrap();
    assert_eq!(finished.status, Some(0), "{report}");
    let block = |name: &str| {
        (kernel(&report, name)["blockSize"].clone(), kernel(&report, name)["range"]["startLine"].clone())
    };
    assert_eq!(block("cname"), (json!(192), json!(4)), "{report}");
    assert_eq!(block("ns::cname"), (json!(64), json!(5)));
    assert_eq!(block("add_kernel"), (json!(256), json!(3)));
    assert_eq!(block("mul_kernel"), (json!(512), json!(3)));
    // 64 threads: 32 blocks of two warps are all 64 warps. 1024 threads with 64 KiB: two blocks are all 64 warps as well.
    let ways: Vec<_> = kernel(&report, "twice")["configurations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|way| {
            (way["blockSize"].clone(), way["dynamicSharedBytes"].clone(), way["blockSizeFrom"].clone())
        })
        .collect();
    assert_eq!(
        ways,
        [
            (json!(64), json!(0), json!("launch at line 10")),
            (json!(1024), json!(65536), json!("launch at line 11")),
        ]
    );
    let human = folder.run(&["check", "--arch", "sm_90", "k.cu"]).unwrap();
    let rows: Vec<_> = human.out.lines().filter(|line| line.trim_start().starts_with("twice")).collect();
    assert_eq!(rows.len(), 2, "{}", human.out);
    assert!(rows[0].contains("block of 64") && rows[1].contains("block of 1024"), "{rows:?}");
}

#[test]
fn only_strings_that_reach_a_compiler_are_compiled_each_by_itself() {
    let text = r#"
"""Example::

    __global__ void k(float* a) { a[i] = undefined_in_doc; }
"""
import cupy
from string import Template
HELP = "__global__ void zz(float* a) { broken"
def f():
    """Runs ``__global__ void foo(int x) {}``."""
    raise ValueError("use __global__ void k(float* a) { a[0] = broken }")
assert grep("__global__ void f(int a) { bad syntax here }") == ["f"]
good = cupy.RawKernel('extern "C" __global__ void good(float* x) { x[0] = nope; }', 'good')
parts = []
parts.append('extern "C" __global__ void p(float* x) {')
parts.append(' x[0] = 1; }')
cupy.RawKernel("\n".join(parts), 'p')
T = Template('extern "C" __global__ void t($type* x) { x[threadIdx.x] = $value; }')
cupy.RawKernel(T.substitute(type=kind, value=3), 't')
cupy.RawKernel(T.substitute(type="float", value="wrong"), 't')
"#;
    let folder = Folder::with(&[("m.py", text)]).unwrap();
    let (finished, report) = folder.check(&["m.py"]).unwrap();
    assert_eq!(finished.status, Some(1), "{report}");
    let found = findings(&report, false);
    assert_eq!(found, ["m.py:13:75 error nvcc/error", "m.py:18:73 error nvcc/error"], "{report}");
    let left_out = report["files"][0]["notCompiled"].to_string();
    assert!(left_out.contains("`T` is put together when the program runs"), "{left_out}");
}
