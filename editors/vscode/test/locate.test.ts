// Which server is taken: the setting's, then the packed one, then that in PATH; and never another than the setting names.
import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { installedByCargo, locate, NotLocated } from "../src/locate";

/** A script in place of the server. */
function script(folder: string, name: string, lines: string, mode = 0o755): string {
  const file = path.join(folder, name);
  fs.writeFileSync(file, `#!/bin/sh\n${lines}\n`, { mode });
  return file;
}

test("a server that can't run is refused with its path, its words, and the setting that helps", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "stitchcuda-"));
  const mark = path.join(folder, "was-run");
  try {
    const rows: [string, RegExp][] = [
      // The wrong libc.
      [
        script(folder, "libc", `echo "stitchcuda: version GLIBC_2.99 not found (required by stitchcuda)" >&2\nexit 127`),
        /\/libc \(named by .*\) can't be run: it ends with status 127: stitchcuda: version GLIBC_2\.99 not found .*`stitchcuda\.server\.path`/,
      ],
      [script(folder, "noexec", `touch ${mark}`, 0o644), /\/noexec \(.*\) is not executable\. .*`stitchcuda\.server\.path`/],
      // A version from before there was a language server.
      [
        script(
          folder,
          "old",
          `[ "$1" = --version ] && { echo 'stitchcuda 0.0.1'; exit 0; }\necho "error: unrecognized subcommand 'lsp'" >&2\nexit 2`,
        ),
        /\/old \(.*\) is too old.*status 2: error: unrecognized subcommand 'lsp'.*`stitchcuda\.server\.path`/,
      ],
      [path.join(folder, "none"), /\/none \(.*\) is not there/],
      [folder, /is not executable/],
    ];
    for (const [named, expected] of rows) {
      await assert.rejects(locate(named, folder), (error) => error instanceof NotLocated && expected.test(error.message), named);
    }
    assert.ok(!fs.existsSync(mark), "what may not be executed was started");
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

function program(folder: string, says: string): string {
  fs.mkdirSync(folder, { recursive: true });
  const file = path.join(folder, "stitchcuda");
  fs.writeFileSync(file, `#!/bin/sh\necho "${says}"\n`, { mode: 0o755 });
  return file;
}

test("the setting wins over the package, and that over PATH", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "stitchcuda-"));
  const before = { ...process.env };
  try {
    const extension = path.join(folder, "extension");
    process.env.PATH = `/usr/bin:/bin:${path.join(folder, "path")}`;
    await assert.rejects(locate("", extension), NotLocated);
    const inPath = program(path.join(folder, "path"), "stitchcuda 1.0");
    assert.equal((await locate("", extension)).path, inPath);
    const bundled = program(path.join(extension, "bin"), "stitchcuda 2.0");
    const found = await locate("", extension);
    assert.deepEqual([found.path, found.version], [bundled, "stitchcuda 2.0"]);
    const named = program(path.join(folder, "named"), "stitchcuda 3.0");
    assert.equal((await locate(named, extension)).version, "stitchcuda 3.0");
    // As shells take it: from the person's folder, or by its name in PATH.
    assert.equal((await locate("stitchcuda", extension)).path, inPath);
    await assert.rejects(locate("stitchcuda-of-mine", extension), /stitchcuda-of-mine \(named by .*\) is not there/);
    process.env.HOME = folder;
    assert.equal((await locate("~/named/stitchcuda", extension)).path, named);
    process.env.CARGO_HOME = "/of/cargo";
    assert.equal(installedByCargo(), "/of/cargo/bin/stitchcuda");
    process.env.CARGO_INSTALL_ROOT = "/of/installs";
    assert.equal(installedByCargo(), "/of/installs/bin/stitchcuda");
    const other = program(path.join(folder, "other"), "something else");
    await assert.rejects(locate(other, extension), /is no StitchCUDA server: it says `something else`/);
    await assert.rejects(locate(path.join(folder, "none"), extension), /stitchcuda\.server\.path/);
  } finally {
    process.env = before;
    fs.rmSync(folder, { recursive: true });
  }
});
