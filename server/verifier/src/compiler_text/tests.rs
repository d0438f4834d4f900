use super::*;

fn short(message: &Message) -> String {
    let place = message.place.as_ref().map_or("-".to_owned(), |place| {
        format!(
            "{}|{}|{}",
            place.file,
            place.line,
            place.column.map_or("-".to_owned(), |column| column.to_string())
        )
    });
    let number = message.number.as_deref().unwrap_or("-");
    let mut text = format!("{:?} {place} {number} {}", message.level, message.text);
    for note in &message.notes {
        let place =
            note.place.as_ref().map_or("-".to_owned(), |place| format!("{}|{}", place.file, place.line));
        text.push_str(&format!("\n  {place} {}", note.text));
    }
    text
}

fn found(bytes: &[u8]) -> String {
    parse(bytes).iter().map(short).collect::<Vec<_>>().join("\n")
}

#[test]
fn windows_paths_keep_their_drive_and_brackets() {
    expect_test::expect_file!["../../tests/fixtures/text/windows.expected"]
        .assert_eq(&found(include_bytes!("../../tests/fixtures/text/windows.log")));
    expect_test::expect_file!["../../tests/fixtures/text/windows_host.expected"]
        .assert_eq(&found(include_bytes!("../../tests/fixtures/text/windows_host.log")));
}

#[test]
fn what_nvcc_13_prints_is_read() {
    expect_test::expect_file!["../../tests/fixtures/text/nvcc13.expected"]
        .assert_eq(&found(include_bytes!("../../tests/fixtures/text/nvcc13.log")));
}

#[test]
fn every_form_is_read() {
    for (text, expected) in [
        (
            "a.cu:3:10: fatal error: no.h: No such file or directory\n    3 | #include \"no.h\"\n      |          ^~~~~~\ncompilation terminated.",
            "Error a.cu|3|10 - no.h: No such file or directory",
        ),
        (
            "In file included from b.cuh:2,\n                 from a.cu:1:\nc.h:7:2: error: #error \"stop\"\n    7 | #error \"stop\"\n      |  ^~~~~",
            "Error c.h|7|2 - #error \"stop\"\n  b.cuh|2 included from here\n  a.cu|1 included from here",
        ),
        (
            "a.cu: In instantiation of 'f<int>':\na.cu:10:20:   required from here\na.cu:3:9: warning: unused variable 'x' [-Wunused-variable]\na.cu:2:1: note: declared here",
            "Warning a.cu|3|9 -Wunused-variable unused variable 'x'\n  a.cu|10 required from here\n  a.cu|2 declared here",
        ),
        (
            "\x1b[01m\x1b[Ka.cu:1:2:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kodd",
            "Error a.cu|1|2 - odd",
        ),
        (
            "C:\\a b\\k.cu(4): catastrophic error #1696: cannot open source file \"x.h\"",
            "Error C:\\a b\\k.cu|4|- 1696 cannot open source file \"x.h\"",
        ),
        (
            "k.cu(4,9): error C2065: 'nope': undeclared identifier",
            "Error k.cu|4|9 C2065 'nope': undeclared identifier",
        ),
        ("/tmp/x (2)/k.cu(4): error: expected a \";\"", "Error /tmp/x (2)/k.cu|4|- - expected a \";\""),
        ("/tmp/x:2/k:1.cu(4): error: f(3): warning: odd", "Error /tmp/x:2/k:1.cu|4|- - f(3): warning: odd"),
        ("k.cu(1): remark #1: hm\n1 error detected in the compilation of \"k.cu\".\n2 errors generated.", ""),
        (
            "k.cu(2): error: static assertion failed\n          detected during instantiation of \"void k(T) [with T=int]\" \n(10): here\n",
            "Error k.cu|2|- - static assertion failed\n  k.cu|10 detected during instantiation of \"void k(T) [with T=int]\"",
        ),
        (
            "a.h(2): error: no\n          detected during:\n            instantiation of \"f\" at line 3\n            instantiation of \"g\" at line 9 of k k.cu\n            [ 4 instantiation contexts not shown ]\n            instantiation of \"h\" at line 12 of \"l.cu\"\n",
            "Error a.h|2|- - no\n  - detected during:\n  a.h|3 instantiation of \"f\"\n  k k.cu|9 instantiation of \"g\"\n  - 4 instantiation contexts not shown\n  l.cu|12 instantiation of \"h\"",
        ),
        (
            "ptxas fatal   : Unresolved extern function '_Z1gi'",
            "Error - - Unresolved extern function '_Z1gi'",
        ),
        (
            "ptxas /tmp/t-6_d.ptx, line 21; error   : Unknown modifier '.bar'",
            "Error /tmp/t-6_d.ptx|21|- - Unknown modifier '.bar'",
        ),
        (
            "ptxas error   : Entry function '_Z1fPf' uses too much shared data (0x61a80 bytes, 0xc000 max)",
            "Error - - Entry function '_Z1fPf' uses too much shared data (0x61a80 bytes, 0xc000 max)",
        ),
        (
            "ptxas info    : 0 bytes gmem\nptxas warning : Registers are spilled to local memory in function 'f', 4 bytes spill stores, 8 bytes spill loads",
            "",
        ),
        (
            "nvlink error   : Undefined reference to '_Z1gi' in 'o.o'",
            "Error - - Undefined reference to '_Z1gi' in 'o.o'",
        ),
        (
            "nvcc fatal   : Unsupported gpu architecture 'sm_52'",
            "Error - - Unsupported gpu architecture 'sm_52'",
        ),
        (
            "nvcc warning : Cannot find valid GPU for '-arch=native', default arch is used",
            "Warning - - Cannot find valid GPU for '-arch=native', default arch is used",
        ),
        (
            "cc1plus: fatal error: nofile.cu: No such file or directory",
            "Error - - cc1plus: nofile.cu: No such file or directory",
        ),
        (
            "k.cu(3): Error: Formal parameter space overflowed (4368 bytes required, max 4096 bytes allowed) in function _Z1k",
            "Error k.cu|3|- - Formal parameter space overflowed (4368 bytes required, max 4096 bytes allowed) in function _Z1k",
        ),
        ("k.cu(3): error: x\nk.cu(3): error: x\n", "Error k.cu|3|- - x"),
        (
            "k.cu(3): error: no instance of f matches\n            argument types are: (int)\n    f(1);\n    ^\n\nk.cu(9): warning #1-D: last line\n",
            "Error k.cu|3|3 - no instance of f matches\nargument types are: (int)\nWarning k.cu|9|- 1-D last line",
        ),
    ] {
        assert_eq!(found(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn nothing_makes_it_fail() {
    assert_eq!(
        found(b"\xff\xfe k.cu(3): error: \xffodd\r\n"),
        "Error \u{fffd}\u{fffd} k.cu|3|- - \u{fffd}odd"
    );
    for text in [
        "",
        "\u{1b}",
        "\u{1b}[",
        "\u{1b}]8;;",
        "(",
        "(1",
        "(1)",
        "(1):",
        "(1): error",
        ":1:",
        "a:1:2:3:4: error: ",
        "ptxas",
        "ptxas error",
        "ptxas x, line ; error",
        "^",
        "é(1): error: é\n  é\n  ^",
        "k(99999999999999): error: x",
        "k(1): error: x\n ^\n^\n",
    ] {
        parse(text.as_bytes());
    }
    let deep = "(".repeat(200_000);
    parse(deep.as_bytes());
    parse(format!("k.cu(1): error: x\n{}", "          detected during: y\n".repeat(100_000)).as_bytes());
}
