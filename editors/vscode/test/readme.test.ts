// The README and the changelog as they are packed: nothing in them leads out of the package.
import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { test } from "node:test";

const root = path.join(__dirname, "..");

test("every link of the packed pages leads to something in the package, or to the web", () => {
  let images = 0;
  for (const page of ["README.md", "CHANGELOG.md", "media/walkthrough/machine.md"]) {
    const folder = path.dirname(path.join(root, page));
    for (const [, to] of fs.readFileSync(path.join(root, page), "utf8").matchAll(/\]\(([^)]+)\)/g)) {
      if (to && !/^(https|command):/.test(to)) {
        const file = path.resolve(folder, to);
        assert.ok(file.startsWith(path.join(root, "media")) && fs.existsSync(file), `${page}: ${to}`);
        images += 1;
      }
    }
  }
  assert.ok(images >= 5);
});
