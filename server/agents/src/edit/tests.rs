//! What is applied, what is refused, and in which words.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::engine::Brief;

const SOURCE: &str = "#include <cstdio>

__global__ void scale(float* p, int n) {
    int i = threadIdx.x;
    if (i < n) {
        p[i] *= 2.0;
    }
    __syncthreads();
}

__global__ void shift(float* p, int n) {
    int i = threadIdx.x;
    p[i] += 1.0;
    __syncthreads();
}

int main() { return 0; }
";

fn check_with(source: &str, answer: &str, scope: &Scope, expected: Expect) {
    let text = match blocks(answer) {
        Err(malformed) => format!("malformed: {malformed}\n"),
        Ok(blocks) => match apply("scale.cu", source, &blocks, scope) {
            Ok(text) => changed_lines(source, &text),
            Err(refusal) => format!("refused: {refusal}\n"),
        },
    };
    expected.assert_eq(&text);
}

fn check(answer: &str, expected: Expect) {
    check_with(SOURCE, answer, &Scope::everything(), expected);
}

/// The lines that differ, with what can't be seen made visible.
fn changed_lines(old: &str, new: &str) -> String {
    let diff = similar::TextDiff::from_lines(old, new);
    let changes = diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal);
    changes.map(|change| format!("{}{:?}\n", change.tag(), change.value())).collect()
}

#[test]
fn a_block_replaces_what_occurs_once() {
    check(
        "Use a float.\n<<<<<<< SEARCH\n        p[i] *= 2.0;\n=======\n        p[i] *= 2.0f;\n>>>>>>> REPLACE\n",
        expect![[r#"
            -"        p[i] *= 2.0;\n"
            +"        p[i] *= 2.0f;\n"
        "#]],
    );
    // Part of a line, inside a fence, with the file's name, a folder before it, and more signs than usual.
    check(
        "**src/scale.cu**\n```cuda\n<<<<<<<<< SEARCH\np[i] += 1.0;\n=======\np[i] += 1.0f;\n>>>>>>>>> REPLACE\n```\n",
        expect![[r#"
            -"    p[i] += 1.0;\n"
            +"    p[i] += 1.0f;\n"
        "#]],
    );
    // Two blocks, not in the order of the file; one takes lines away.
    check(
        "<<<<<<< SEARCH\n    p[i] += 1.0;\n    __syncthreads();\n=======\n    p[i] += 1.0f;\n>>>>>>> REPLACE\n\
         <<<<<<< SEARCH\n    }\n    __syncthreads();\n}\n=======\n    }\n}\n>>>>>>> REPLACE\n",
        expect![[r#"
            -"    __syncthreads();\n"
            -"    p[i] += 1.0;\n"
            -"    __syncthreads();\n"
            +"    p[i] += 1.0f;\n"
        "#]],
    );
    check(
        "<<<<<<< SEARCH\n#include <cstdio>\n\n=======\n>>>>>>> REPLACE\n",
        expect![[r##"
            -"#include <cstdio>\n"
            -"\n"
        "##]],
    );
}

#[test]
fn what_can_not_be_seen_is_forgiven() {
    // Spaces at the end of lines, empty lines around, CRLF in the answer.
    check(
        "<<<<<<< SEARCH\r\n\r\n    if (i < n) {  \r\n        p[i] *= 2.0;\r\n\r\n=======\r\n    if (i < n) {\r\n        p[i] *= 2.0f;\r\n>>>>>>> REPLACE\r\n",
        expect![[r#"
            -"        p[i] *= 2.0;\n"
            +"        p[i] *= 2.0f;\n"
        "#]],
    );
    // Line numbers of a listing.
    check(
        "<<<<<<< SEARCH\n 5 |     if (i < n) {\n 6 |         p[i] *= 2.0;\n=======\n 5 |     if (i < n) {\n 6 |         p[i] *= 2.0f;\n>>>>>>> REPLACE\n",
        expect![[r#"
            -"        p[i] *= 2.0;\n"
            +"        p[i] *= 2.0f;\n"
        "#]],
    );
}

#[test]
fn the_line_ends_of_the_file_stay() {
    let everything = Scope::everything();
    let answer = "<<<<<<< SEARCH\na\nb\n=======\nx\ny\nz\n>>>>>>> REPLACE\n";
    check_with(
        "a\r\nb\r\nc",
        answer,
        &everything,
        expect![[r#"
            -"a\r\n"
            -"b\r\n"
            +"x\r\n"
            +"y\r\n"
            +"z\r\n"
        "#]],
    );
    check_with(
        "c\r\na\nb",
        answer,
        &everything,
        expect![[r#"
            -"a\n"
            -"b"
            +"x\n"
            +"y\n"
            +"z"
        "#]],
    );
    // Lines that go at the end take the line end before them along, so that there is still none at the end.
    check_with(
        "c\na\nb",
        "<<<<<<< SEARCH\na\nb\n=======\n>>>>>>> REPLACE\n",
        &everything,
        expect![[r#"
            -"c\n"
            -"a\n"
            -"b"
            +"c"
        "#]],
    );
    assert_eq!(replace_all("a\r\nb\r\n", "x\ny", &everything).unwrap(), "x\r\ny\r\n");
    assert_eq!(replace_all("a", "x\ny\n\n", &everything).unwrap(), "x\ny");
    assert_eq!(replace_all("a\n", "a", &everything), Err(Refusal::Nothing));
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    check(
        "<<<<<<< SEARCH\n    int j = threadIdx.x;\n    if (j < n) {\n        p[i] *= 2.0;\n    }\n=======\nx\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The SEARCH text of block 1 does not occur in `scale.cu`. The nearest passage is at lines 4 to 7:
                int i = threadIdx.x;
                if (i < n) {
                    p[i] *= 2.0;
                }
            They differ first in line 4: the file has `int i = threadIdx.x;`, the SEARCH has `int j = threadIdx.x;`. Copy the lines exactly as they stand in the file.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\n  if (i < n) {\n    p[i] *= 2.0;\n  }\n=======\nx\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The SEARCH text of block 1 does not occur in `scale.cu`. The nearest passage is at lines 5 to 7:
                if (i < n) {
                    p[i] *= 2.0;
                }
            They differ first in line 5, in spaces or tabs at its beginning: the file has "    ", the SEARCH has "  ". Copy the lines exactly as they stand in the file.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\n    int i = threadIdx.x;\n\n    p[i] += 1.0;\n=======\nx\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The SEARCH text of block 1 does not occur in `scale.cu`. The nearest passage is at lines 12 to 14:
                int i = threadIdx.x;
                p[i] += 1.0;
                __syncthreads();
            They differ first in line 13: the file has `p[i] += 1.0;`, the SEARCH has an empty line. Copy the lines exactly as they stand in the file.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\n    p[i] = p[i] + 1.0;\n=======\nx\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The SEARCH text of block 1 does not occur in `scale.cu`. The nearest passage is at lines 13 to 13:
                p[i] += 1.0;
            They differ first in line 13: the file has `p[i] += 1.0;`, the SEARCH has `p[i] = p[i] + 1.0;`. Copy the lines exactly as they stand in the file.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\nstd::vector<std::string> arguments(argc);\n=======\nx\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The SEARCH text of block 1 does not occur in `scale.cu`. Nothing in it is like that text. Copy the lines to be replaced exactly as they stand in the file.
        "#]],
    );
    check_with(
        "",
        "<<<<<<< SEARCH\nint x;\n=======\nx\n>>>>>>> REPLACE\n",
        &Scope::everything(),
        expect![[r#"
            refused: The SEARCH text of block 1 does not occur in `scale.cu`. Nothing in it is like that text. Copy the lines to be replaced exactly as they stand in the file.
        "#]],
    );
}

#[test]
fn what_points_at_no_one_place_is_refused() {
    check(
        "<<<<<<< SEARCH\n    __syncthreads();\n}\n=======\n}\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The SEARCH text of block 1 occurs 2 times in `scale.cu`, at lines 8, 14. Add lines before or after it, until it occurs once.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\np[i]\n=======\nq[i]\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The SEARCH text of block 1 occurs 2 times in `scale.cu`, at lines 6, 13. Add lines before or after it, until it occurs once.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\n=======\n#include <cmath>\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The SEARCH of block 1 is empty, which says nothing about where its REPLACE belongs. Put the lines there that come before the place, and repeat them in the REPLACE.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\n    if (i < n) {\n        p[i] *= 2.0;\n=======\n    {\n>>>>>>> REPLACE\n<<<<<<< SEARCH\n        p[i] *= 2.0;\n    }\n=======\n    }\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: Blocks 1 and 2 both change line 6. All blocks are applied to the file as it was shown, not to each other's result. Make one block of them.
        "#]],
    );
    check(
        "other.cu\n<<<<<<< SEARCH\nint main() { return 0; }\n=======\nint main() { return 1; }\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: Block 1 is about `other.cu`, but only `scale.cu` may be changed.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\n    p[i] += 1.0;\n=======\n    p[i] += 1.0;\n>>>>>>> REPLACE\n",
        expect![[r#"
            refused: The answer changes nothing: the code comes out as it was.
        "#]],
    );
}

#[test]
fn what_is_no_block_is_said() {
    check(
        "Here:\n<<<<<<< SEARCH\n    p[i] += 1.0;\n",
        expect![[r#"
            malformed: The block that begins at line 2 of the answer has no `=======` line, so the answer is cut or malformed. A block is `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\n    p[i] += 1.0;\n=======\n    p[i] += 1.0f;\n",
        expect![[r#"
            malformed: The block that begins at line 1 of the answer has no `>>>>>>> REPLACE` line, so the answer is cut or malformed. A block is `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`.
        "#]],
    );
    check(
        "<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n",
        expect![[r#"
            malformed: Line 5 of the answer is a `=======` where none belongs. A block is `<<<<<<< SEARCH`, the old lines, one `=======`, the new lines, `>>>>>>> REPLACE`.
        "#]],
    );
}

/// The scope of a person who selected all of `scale`.
fn scale_only(current: &str) -> Scope {
    let start = SOURCE.find("__global__").unwrap();
    let end = SOURCE.find("\n\n__global__ void shift").unwrap();
    Scope::of(&Brief {
        file: "scale.cu".to_owned(),
        reference: SOURCE.to_owned(),
        current: current.to_owned(),
        selection: Some(Span::new(start, end)),
        scope: vec!["scale".to_owned()],
        ..Brief::default()
    })
}

#[test]
fn only_the_selection_is_changed() {
    let inside = "<<<<<<< SEARCH\n        p[i] *= 2.0;\n=======\n        p[i] *= 2.0f;\n        // more\n>>>>>>> REPLACE\n";
    check_with(
        SOURCE,
        inside,
        &scale_only(SOURCE),
        expect![[r#"
            -"        p[i] *= 2.0;\n"
            +"        p[i] *= 2.0f;\n"
            +"        // more\n"
        "#]],
    );
    // A new function before it, and an include, are no change of anything else.
    check_with(
        SOURCE,
        "<<<<<<< SEARCH\n#include <cstdio>\n\n__global__ void scale(float* p, int n) {\n=======\n#include <cstdio>\n#include <cmath>\n\n\
         __device__ float twice(float x) { return 2.0f * x; }\n\n__global__ void scale(float* p, int n) {\n>>>>>>> REPLACE\n",
        &scale_only(SOURCE),
        expect![[r##"
            +"#include <cmath>\n"
            +"\n"
            +"__device__ float twice(float x) { return 2.0f * x; }\n"
        "##]],
    );
    check_with(
        SOURCE,
        "<<<<<<< SEARCH\n    p[i] += 1.0;\n=======\n    p[i] += 1.0f;\n>>>>>>> REPLACE\n",
        &scale_only(SOURCE),
        expect![[r#"
            refused: The answer changes line 13 in `shift`, but only `scale` may be changed (new functions, includes and constants may be added between functions). Leave that line as it is.
        "#]],
    );
    check_with(
        SOURCE,
        "<<<<<<< SEARCH\nint main() { return 0; }\n=======\n>>>>>>> REPLACE\n",
        &scale_only(SOURCE),
        expect![[r#"
            refused: The answer changes line 17, but only `scale` may be changed (new functions, includes and constants may be added between functions). Leave that line as it is.
        "#]],
    );
}

#[test]
fn spaces_outside_of_the_selection_stay() {
    // A whole file with other indentation, and without its empty lines.
    let other = SOURCE
        .replace("2.0", "2.0f")
        .replace("    p[i] += 1.0;", "  p[i] += 1.0;")
        .replace("}\n\nint", "}\nint");
    let text = replace_all(SOURCE, &other, &scale_only(SOURCE)).unwrap();
    assert_eq!(text, SOURCE.replace("2.0", "2.0f"));
    let other = SOURCE.replace("    p[i] += 1.0;", "  p[i] += 1.0;");
    assert_eq!(replace_all(SOURCE, &other, &scale_only(SOURCE)), Err(Refusal::Nothing));
}

#[test]
fn the_selection_moves_with_what_was_changed_in_it() {
    let current = SOURCE.replace(
        "    int i = threadIdx.x;\n    if",
        "    int i = threadIdx.x;\n    const float two = 2.0f;\n    if",
    );
    let scope = scale_only(&current);
    check_with(
        &current,
        "<<<<<<< SEARCH\n        p[i] *= 2.0;\n    }\n    __syncthreads();\n=======\n        p[i] *= two;\n    }\n>>>>>>> REPLACE\n",
        &scope,
        expect![[r#"
            -"        p[i] *= 2.0;\n"
            +"        p[i] *= two;\n"
            -"    __syncthreads();\n"
        "#]],
    );
    check_with(
        &current,
        "<<<<<<< SEARCH\n    p[i] += 1.0;\n=======\n    p[i] += 1.0f;\n>>>>>>> REPLACE\n",
        &scope,
        expect![[r#"
            refused: The answer changes line 14 in `shift`, but only `scale` may be changed (new functions, includes and constants may be added between functions). Leave that line as it is.
        "#]],
    );
}

proptest! {
    /// Whatever lines are taken for a SEARCH that occurs once, the rest of the text stays as it is, byte for byte.
    #[test]
    fn nothing_else_changes(
        lines in prop::collection::vec("[ a-e=<>{}]{0,6}", 1..12),
        crlf in any::<bool>(),
        last in any::<bool>(),
        first in 0usize..12,
        count in 1usize..4,
        new in prop::collection::vec("[x-z ]{1,4}", 0..3),
    ) {
        let newline = if crlf { "\r\n" } else { "\n" };
        let source = lines.join(newline) + if last { newline } else { "" };
        let first = first % lines.len();
        let end = (first + count).min(lines.len());
        let block = Block { search: lines[first..end].join("\n"), replace: new.join("\n"), ..Block::default() };
        if let Ok(text) = apply("a.cu", &source, &[block], &Scope::everything()) {
            let before: usize = lines[..first].iter().map(|line| line.len() + newline.len()).sum();
            // A SEARCH that occurs once is the one that it was taken from, unless it is forgiven spaces.
            let occurs = Lines::of(&source).whole(&lines[first..end].iter().map(String::as_str).collect::<Vec<_>>(), |a, b| a == b);
            if occurs.len() == 1 && !new.is_empty() {
                prop_assert!(text.starts_with(&source[..before]));
                let after: usize = lines[end..].iter().map(|line| line.len() + newline.len()).sum();
                prop_assert!(text.ends_with(&source[source.len().saturating_sub(after)..]) || !last);
                prop_assert_eq!(text.ends_with('\n'), source.ends_with('\n') || (text.ends_with('\n') && new.last().is_none()));
            }
        }
    }

    /// No answer makes it panic, and no refusal is without words.
    #[test]
    fn any_answer_is_read(answer in "(<<<<<<< SEARCH|=======|>>>>>>> REPLACE|```|[a-z ;{}]{0,8}|\n|\r\n|é){0,24}") {
        match blocks(&answer) {
            Ok(blocks) => {
                if let Err(refusal) = apply("a.cu", "a\nb é\n", &blocks, &Scope::everything()) {
                    prop_assert!(!refusal.to_string().is_empty());
                }
            }
            Err(malformed) => prop_assert!(!malformed.to_string().is_empty()),
        }
    }
}
