//! Sources that are put together in lists, and those of which a file does not say what they are.

use super::{LOAD, read, text, texts};

#[test]
fn a_list_that_grows_in_plain_sight_is_joined() {
    for (rest, expected) in [
        ("parts = []\nparts.append('a')\nparts.append('b')\nload_inline('m', '', '\\n'.join(parts))", "a\nb"),
        (
            "parts = ['a']\nparts += ['b', 'c']\nparts.extend(['d'])\nload_inline('m', '', ''.join(parts))",
            "abcd",
        ),
        (
            "H = 'h;'\ndef f(n):\n    parts = [H]\n    # then\n    parts.append('''\nx\n''')\n    if n:\n        print(n)\n    parts.append('y')\n    \
             s = ''.join(parts)\n    return load_inline('m', '', s)",
            "h;\nx\ny",
        ),
        ("parts = ['a', 'b']\ndef f():\n    load_inline('m', '', ''.join(parts))", "ab"),
        (
            "parts = ['a']\nparts.append(f'{n} b')\nprint(len(parts))\nload_inline('m', '', ' '.join(parts))",
            "a stitch_unknown b",
        ),
    ] {
        let source = format!("{LOAD}{rest}\n");
        assert_eq!(text(&source), expected, "{rest}");
        assert!(read(&source).unknown.is_empty(), "{rest}");
    }
    let given = format!("{LOAD}parts = ['a']\nparts.append('b')\nload_inline('m', '', parts)\n");
    assert_eq!(texts(&given).into_iter().map(|(.., text)| text).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_list_that_may_hold_something_else_is_not_known() {
    for rest in [
        "parts = []\nif x:\n    parts.append('a')\nload_inline('m', '', ''.join(parts))",
        "parts = []\nfor x in y:\n    parts.append('a')\nload_inline('m', '', ''.join(parts))",
        "if x:\n    parts = []\nif y:\n    parts.append('a')\nload_inline('m', '', ''.join(parts))",
        "parts = ['a']\nfill(parts)\nload_inline('m', '', ''.join(parts))",
        "parts = ['a']\nparts.append(read())\nparts.insert(0, 'b')\nload_inline('m', '', ''.join(parts))",
        "parts = ['a']\nparts[0] = 'b'\nload_inline('m', '', ''.join(parts))",
        "parts = ['a']\ndef f():\n    parts.append('b')\nload_inline('m', '', ''.join(parts))",
        "parts = ['a']\nload_inline('m', '', ''.join(parts))\nparts.append('b')",
        "parts = ['a']\nparts = ['b']\nload_inline('m', '', ''.join(parts))",
        "parts = ['a']\nparts += more\nload_inline('m', '', ''.join(parts))",
    ] {
        let source = format!("{LOAD}{rest}\n");
        assert_eq!(texts(&source), [], "{rest}");
        let [unknown] = &read(&source).unknown[..] else { panic!("{rest}") };
        assert_eq!(&source[unknown.span.range()], "''.join(parts)");
        assert_eq!(unknown.reason, "`''.join(parts)` is put together when the program runs");
    }
}

#[test]
fn a_source_that_is_not_known_says_why() {
    for (rest, expected) in [
        ("from kernels import SRC\nload_inline('m', '', SRC)", "SRC: `SRC` is imported from `kernels`"),
        ("import a.kernels as k\nload_inline('m', '', k.SRC)", "k.SRC: `k.SRC` is imported from `a.kernels`"),
        (
            "from kernels import SRC\ns = SRC\nload_inline('m', '', [s])",
            "s: `SRC` is imported from `kernels`",
        ),
        ("def f(src):\n    load_inline('m', '', cuda_sources=src)", "src: `src` is a parameter"),
        ("load_inline('m', '', SRC)", "SRC: nothing here says what `SRC` is"),
        (
            "s = open('a.cu').read()\nload_inline('m', '', s)",
            "s: `open('a.cu').read()` is put together when the program runs",
        ),
        (
            "p = []\nfor x in y:\n    p.append(x)\nload_inline('m', '', p)",
            "p: `p` is put together when the program runs",
        ),
        ("load_inline('m', '', make(1))", "make(1): `make` makes it when the program runs"),
        (
            "from kernels import make\nload_inline('m', '', make())",
            "make(): `make`, imported from `kernels`, makes it when the program runs",
        ),
        (
            "import cupy\ncupy.RawKernel(open(x).read(), 'k')",
            "open(x).read(): `open(x).read()` is put together when the program runs",
        ),
        // Known, or no source at all.
        ("load_inline('m', SRC, '')", ""),
        ("load_inline('m', 'a', None)", ""),
        ("load_inline('m', 'a', [])", ""),
        ("load_inline('m', 'a')", ""),
        ("load_inline('m', '', HEADER + 'a')", ""),
        ("other(SRC)", ""),
    ] {
        let source = format!("{LOAD}{rest}\n");
        let unknown = read(&source).unknown;
        let shown: Vec<_> =
            unknown.iter().map(|u| format!("{}: {}", &source[u.span.range()], u.reason)).collect();
        assert_eq!(shown.join("|"), expected, "{rest}");
    }
}
