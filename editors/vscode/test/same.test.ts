// What nvcc 13.0 and clang 22 say of the same lines, word for word, and what only one of them says.
import * as assert from "node:assert/strict";
import { test } from "node:test";
import { isSame, quoted, type Said } from "../src/same";

function said(kind: Said["kind"], line: number, [from, to]: [number, number], message: string): Said {
  const text = to - from > 20 ? "a whole line" : "x".repeat(to - from);
  return { kind, message, start: { line, character: from }, end: { line, character: to }, text };
}

const error = (line: number, place: [number, number], message: string): Said => said("error", line, place, message);

test("the same fault in other words is the same", () => {
  const rows: [Said, Said][] = [
    [error(3, [19, 31], 'identifier "missing_name" is undefined'), error(3, [19, 31], "Use of undeclared identifier 'missing_name'")],
    // At the end of a line, and at the start of the next.
    [error(5, [2, 5], 'expected a ";"'), error(4, [15, 16], "Expected ';' after expression")],
    [
      error(6, [19, 20], "expression must be a modifiable lvalue"),
      error(6, [19, 24], "Cannot assign to variable 'c' with const-qualified type 'const int'"),
    ],
    [
      error(7, [2, 3], 'expression must have class type but it has type "float *"'),
      error(7, [4, 8], "Member reference base type 'float *' is not a structure or union"),
    ],
    [
      error(8, [9, 10], "return value type does not match the function type"),
      error(8, [2, 8], "Void function 'k' should not return a value"),
    ],
    [error(12, [16, 17], 'class "S" has no member "b"'), error(12, [16, 17], "No member named 'b' in 'S'")],
    [
      error(14, [10, 11], 'no instance of function template "g" matches the argument list\nargument types are: (int, float)'),
      error(14, [10, 11], "No matching function for call to 'g'"),
    ],
    [
      error(14, [29, 36], 'no suitable constructor exists to convert from "std::nullptr_t" to "S"'),
      error(14, [24, 25], "No viable conversion from 'std::nullptr_t' to 'S'"),
    ],
    [
      said("warning", 2, [6, 12], 'variable "unused" was declared but never referenced'),
      said("warning", 2, [6, 12], "Unused variable 'unused'"),
    ],
    [
      said("warning", 3, [0, 1], 'missing return statement at end of non-void function "no_return" [940-D]'),
      said("warning", 3, [0, 1], "Non-void function does not return a value"),
    ],
    [said("warning", 4, [53, 55], "shift count is too large [63-D]"), said("warning", 4, [50, 52], "Shift count >= width of type")],
  ];
  for (const [ours, theirs] of rows) {
    assert.ok(isSame(ours, theirs) && isSame(theirs, ours), ours.message);
  }
});

test("another fault on the line is another one", () => {
  const ours = error(0, [0, 8], 'identifier "__shared" is undefined');
  const rows: Said[] = [
    // About clangd itself, wherever it puts that.
    error(
      0,
      [0, 0],
      "Cannot find CUDA installation; provide its path via '--cuda-path', or pass '-nocudainc' to build without CUDA includes",
    ),
    error(0, [20, 29], "Use of undeclared identifier 'threadIdx'"),
    said("warning", 0, [0, 8], "Identifier '__shared' is reserved"),
    said(undefined, 0, [0, 8], "Unknown word: __shared"),
    error(9, [0, 8], "Use of undeclared identifier '__shared'"),
  ];
  for (const theirs of rows) {
    assert.ok(!isSame(ours, theirs), theirs.message);
  }
  // A name in a macro has no column, and what is at the other end of its line is another matter.
  assert.ok(!isSame(error(5, [0, 43], 'identifier "only_for_nvcc" is undefined'), error(5, [0, 10], "Unknown type name '__global__'")));
  assert.ok(!isSame(error(5, [0, 43], "expression must be a modifiable lvalue"), error(5, [0, 10], "Unknown type name '__global__'")));
  const limit = error(4, [2, 3], 'the size of "tile" exceeds the shared memory of a block');
  assert.ok(!isSame(limit, error(5, [2, 3], "expected ';' after expression")), "and none of the next line");
});

test("names are compared without scopes and arguments", () => {
  assert.deepEqual([...quoted("no member named 'at<int>(long)' in \"ns::S\"")], ["at<int>(long)", "at", "ns::S", "S"]);
});
