// The package of a platform, with the server inside: installed, it needs no setting and nothing in PATH.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Workbench } from "./page.mjs";
import { installExtension, openBrowser, startEditor, workbench } from "./workbench.mjs";

export async function bundled({ tools, out, bundle, environment, folder: copy }) {
  const editor = await startEditor({
    tools,
    out,
    name: "bundled",
    // Of the server nothing is set. A line that is broken, where its path is long, would be two.
    settings: { "[markdown]": { "editor.wordWrap": "off" } },
    environment: { ...environment, PATH: "/usr/bin:/bin" },
    flags: ["--disable-workspace-trust"],
    before: (base) => installExtension(tools, base, bundle, environment),
  });
  const { browser, page } = await openBrowser({ tools, out, name: "bundled" });
  const at = new Workbench(page, out);
  try {
    await page.goto(workbench(editor.host, copy(), [["openFile", path.join(out, "bundled", "workspace", "energy.cu")]]));
    await at.check("the server of the package runs, and compiles", async () => {
      await at.lens("Optimize").waitFor();
      await at.line(/registers/).waitFor();
    });
    await at.check("it is the one in the package", async () => {
      const extensions = path.join(out, "bundled", "extensions");
      const [installed] = fs.readdirSync(extensions).filter((name) => name.startsWith("stitchcuda.stitchcuda-"));
      assert.ok(installed, "the extension is installed");
      const program = path.join(extensions, installed, "bin", "stitchcuda");
      assert.ok(fs.statSync(program).mode & 0o100, "it may be executed");
      await at.command("StitchCUDA: Debug Information");
      await at.line(/packed.with.the.extension/).waitFor();
    });
  } finally {
    await browser.close();
    editor.stop();
  }
  return at;
}
