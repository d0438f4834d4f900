// Numbers as they are shown.
import * as assert from "node:assert/strict";
import { test } from "node:test";
import { quantity } from "../src/words";

test("numbers have their unit", () => {
  assert.equal(quantity(0.456, "ratio"), "46%");
  assert.equal(quantity(48, "bytes"), "48 bytes");
  assert.equal(quantity(1536, "bytes"), "1.5 KiB");
  assert.equal(quantity(37, "count"), "37");
  assert.equal(quantity(0.003214, "seconds"), "3.21 ms");
  assert.equal(quantity(0.000302, "seconds"), "302 µs");
  assert.equal(quantity(2.5, "seconds"), "2.5 s");
  assert.equal(quantity(0, "seconds"), "0 ns");
});
