// The package without a server inside, on a machine that has none: it says so, and offers to build one or to name one.
import path from "node:path";
import { Workbench } from "./page.mjs";
import { installExtension, openBrowser, startEditor, workbench } from "./workbench.mjs";

export async function bare({ tools, out, vsix, settings, environment, folder: copy }) {
  const server = settings["stitchcuda.server.path"];
  const nothing = { ...environment, PATH: "/usr/bin:/bin" };
  const editor = await startEditor({
    tools,
    out,
    name: "bare",
    settings: {},
    environment: nothing,
    flags: ["--disable-workspace-trust"],
    before: (base) => installExtension(tools, base, vsix, environment),
  });
  const { browser, page } = await openBrowser({ tools, out, name: "bare" });
  const at = new Workbench(page, out);
  try {
    await page.goto(workbench(editor.host, copy(), [["openFile", path.join(out, "bare", "workspace", "energy.cu")]]));
    await at.check("without a server a build is offered", async () => {
      const toast = at.toast("The server `stitchcuda` was not found");
      await toast.waitFor();
      for (const offer of ["Build It", "Choose It…"]) {
        await toast.locator("a.monaco-button, .monaco-text-button", { hasText: offer }).first().waitFor();
      }
      await at.shot("bare");
    });
    await at.check("commands say that the server does not run, and what starts it", async () => {
      await at.command("StitchCUDA: Doctor");
      await at.toast("The StitchCUDA server does not run").waitFor();
    });
    await at.check("the language status says so too, and nothing of a server that is not there", async () => {
      await page.locator('.statusbar-item[id*="status.languageStatus"]').first().click();
      const items = page.locator(".hover-language-status");
      for (const text of ["StitchCUDA does not run", "Engine: not known yet", "Nothing is compiled"]) {
        await items.filter({ hasText: text }).first().waitFor();
      }
      // It stays over the message until something else is clicked; Escape would take the message away.
      await at.line("main").click();
      await items.first().waitFor({ state: "detached" });
    });
    await at.check("one that is chosen is taken, and everything is there", async () => {
      const toast = at.toast("The server `stitchcuda` was not found");
      await toast.locator("a.monaco-button, .monaco-text-button", { hasText: "Choose It…" }).first().click();
      await at.chooseFile(server);
      await at.lens("Optimize").waitFor();
    });
  } finally {
    await browser.close();
    editor.stop();
  }
  return at;
}
