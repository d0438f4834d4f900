// A workspace that is not trusted: findings of the static rules and nothing else, whatever its settings say; and everything once it is.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Workbench } from "./page.mjs";
import { installExtension, openBrowser, startEditor, workbench } from "./workbench.mjs";

/** A program that must never run: it would leave this mark. */
const MARK = "was-run";

export async function trust({ tools, out, vsix, settings, environment, folder: copy }) {
  const editor = await startEditor({
    tools,
    out,
    name: "trust",
    settings: { ...settings, "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.untrustedFiles": "open" },
    environment,
    flags: [],
    before: (base) => installExtension(tools, base, vsix, environment),
  });
  const folder = copy();
  const mark = path.join(out, "trust", MARK);
  const evil = path.join(folder, "evil.sh");
  fs.writeFileSync(evil, `#!/bin/sh\ntouch ${mark}\nexit 1\n`, { mode: 0o755 });
  // What a workspace would do that wants to run a program of its own.
  fs.writeFileSync(
    path.join(folder, ".vscode", "settings.json"),
    JSON.stringify({ "stitchcuda.server.path": evil, "stitchcuda.nvcc.path": evil, "stitchcuda.clang.path": evil }),
  );
  fs.writeFileSync(path.join(folder, "stitchcuda.toml"), `[nvcc]\npath = "${evil}"\n`);
  const file = path.join(folder, "energy.cu");
  const { browser, page } = await openBrowser({ tools, out, name: "trust" });
  const at = new Workbench(page, out);
  try {
    await page.goto(workbench(editor.host, folder, [["openFile", file]]));
    await at.check("without trust there are static findings", async () => {
      await page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor();
      await at.editor.locator(".squiggly-info, .squiggly-warning").first().waitFor({ state: "attached" });
    });
    await at.check("nothing is offered that would run a program, and nothing was run", async () => {
      await at.lens("not launched here").or(at.lens("1 launch")).waitFor();
      assert.equal(await at.lens("Optimize").count(), 0);
      assert.equal(await at.line(/registers/).count(), 0);
      assert.ok(!fs.existsSync(mark), "a program of the workspace was run");
      await at.shot("restricted");
    });
    await at.check("with trust, everything is there", async () => {
      // Its own programs would count now, so they go first.
      fs.writeFileSync(path.join(folder, ".vscode", "settings.json"), "{}");
      fs.rmSync(path.join(folder, "stitchcuda.toml"));
      await at.command("Workspaces: Manage Workspace Trust");
      await page.locator(".workspace-trust-editor .monaco-button", { hasText: "Trust" }).first().click();
      await page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor({ state: "detached" });
      await page.keyboard.press("Escape");
      await at.lens("Optimize").waitFor();
      await at.line(/registers/).waitFor();
    });
  } finally {
    await browser.close();
    editor.stop();
  }
  return at;
}
