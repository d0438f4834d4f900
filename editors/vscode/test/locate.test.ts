// Which server is taken: the setting's, then the packed one, then that in PATH; and never another than the setting names.
import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { locate, NotLocated } from "../src/locate";

function program(folder: string, says: string): string {
  fs.mkdirSync(folder, { recursive: true });
  const file = path.join(folder, "stitchcuda");
  fs.writeFileSync(file, `#!/bin/sh\necho "${says}"\n`, { mode: 0o755 });
  return file;
}

test("the setting wins over the package, and that over PATH", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "stitchcuda-"));
  const before = process.env["PATH"];
  try {
    const extension = path.join(folder, "extension");
    process.env["PATH"] = `/usr/bin:/bin:${path.join(folder, "path")}`;
    await assert.rejects(locate("", extension), NotLocated);
    const inPath = program(path.join(folder, "path"), "stitchcuda 1.0");
    assert.equal((await locate("", extension)).path, inPath);
    const bundled = program(path.join(extension, "bin"), "stitchcuda 2.0");
    const found = await locate("", extension);
    assert.deepEqual([found.path, found.version], [bundled, "stitchcuda 2.0"]);
    const named = program(path.join(folder, "named"), "stitchcuda 3.0");
    assert.equal((await locate(named, extension)).version, "stitchcuda 3.0");
    const other = program(path.join(folder, "other"), "something else");
    await assert.rejects(locate(other, extension), /does not run as a StitchCUDA server: it says `something else`/);
    await assert.rejects(locate(path.join(folder, "none"), extension), /stitchcuda\.server\.path/);
  } finally {
    process.env["PATH"] = before;
    fs.rmSync(folder, { recursive: true });
  }
});
