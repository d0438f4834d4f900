// Numbers as they are shown.
import * as assert from "node:assert/strict";
import { test } from "node:test";
import { endedWith, quantity } from "../src/words";

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

test("what a server took with it is said, and what is left of it", () => {
  assert.equal(endedWith([{ title: "Profile a.cu" }]), "The StitchCUDA server ended, and with it: Profile a.cu.");
  assert.match(
    endedWith([{ title: "Optimize k", run: "1-k" }, { title: "Verify b.cu" }]),
    /: Optimize k, Verify b\.cu\. .* Earlier Runs\.$/,
  );
});
