// The main job by clicks, with the packed extension installed: the lens, the message, the difference, the evidence, Accept, and the file on
// disk. The pictures of the README are taken here.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fs from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { Workbench } from "./page.mjs";
import { installExtension, openBrowser, startEditor, workbench } from "./workbench.mjs";

/** Puts kernels and what Nsight Compute wrote of them on an H200 into a folder: its file. */
function recorded(folder, extension) {
  const server = path.join(extension, "..", "..", "server");
  fs.copyFileSync(path.join(server, "simulator/src/machine/tests/ptx/lines.cu"), path.join(folder, "lines.cu"));
  const pages = ["raw", "source"].map((page) => path.join(server, `profiles/tests/data/h200/lines.full.ncu-${page}.csv.gz`));
  const file = path.join(folder, "h200.csv");
  fs.writeFileSync(file, Buffer.concat(pages.map((page) => gunzipSync(fs.readFileSync(page)))));
  return file;
}

export async function ui({ tools, out, extension, vsix, settings, environment, folder: copy }) {
  const editor = await startEditor({
    tools,
    out,
    name: "ui",
    settings,
    environment,
    flags: ["--disable-workspace-trust"],
    before: (base) => installExtension(tools, base, vsix, environment),
  });
  const folder = copy();
  const file = path.join(folder, "transpose.cu");
  const { browser, page } = await openBrowser({ tools, out, name: "ui" });
  const at = new Workbench(page, out);
  try {
    await page.goto(workbench(editor.host, folder, [["openFile", file]]));
    await at.check("a kernel has squiggles, its numbers at the end of its line, and lenses", async () => {
      await at.editor.locator(".squiggly-info, .squiggly-warning").first().waitFor({ state: "attached" });
      await at.line(/registers/).waitFor();
      await at.lens("Optimize").waitFor();
      await page.locator(".codelens-decoration", { hasText: "occupancy" }).first().waitFor();
      await at.shot("editor");
    });
    await at.check("the language status says where kernels run, what plans, and whether that goes on by itself", async () => {
      await page.locator('.statusbar-item[id*="status.languageStatus"]').first().click();
      const items = page.locator(".hover-language-status");
      for (const text of ["sim:h200", "Engine: builtin", "Compiles on save"]) {
        await items.filter({ hasText: text }).first().waitFor();
      }
      await page.keyboard.press("Escape");
    });
    await at.check("the lens starts a job, which the status bar and the view show", async () => {
      await at.lens("Optimize").click();
      await page.locator('.statusbar-item[id*="stitchcuda.jobs"]', { hasText: "Optimize" }).waitFor();
      await page.locator('.statusbar-item[id*="stitchcuda.jobs"]').click();
      await at.widenSideBar(170);
      await page.locator(".pane-body .monaco-list-row", { hasText: /Optimize.*(building|running the|measuring)/ }).waitFor();
      await at.shot("jobs");
    });
    await at.check("its end is said with what was gained, and the difference is a click away", async () => {
      const toast = at.toast("times fewer estimated cycles");
      await toast.waitFor();
      await toast.locator("a.monaco-button, .monaco-text-button", { hasText: "Review" }).first().click();
      await page.locator(".monaco-diff-editor").waitFor();
      await page.locator(".monaco-diff-editor .line-insert, .monaco-diff-editor .char-insert").first().waitFor({ state: "attached" });
      await at.titleAction("Accept the Candidate").waitFor();
      await at.shot("review");
    });
    await at.check("the evidence is a page that loads nothing and runs nothing", async () => {
      await at.titleAction("Show Evidence").click();
      await page.locator("iframe.webview").first().waitFor({ state: "attached" });
      const frame = page.frameLocator("iframe.webview").frameLocator("iframe");
      await frame.locator("h2", { hasText: "The verdict" }).waitFor();
      const policy = await frame.locator("meta[http-equiv]").getAttribute("content");
      assert.match(policy ?? "", /^default-src 'none'; style-src 'nonce-[^']+';$/);
      assert.equal(await frame.locator("script[src], img, link, iframe").count(), 0);
      await at.shot("evidence");
      await page.keyboard.press("Escape");
    });
    await at.check("Accept makes the edit, and it is saved", async () => {
      const before = fs.readFileSync(file, "utf8");
      await page.locator(".tab", { hasText: "candidate" }).first().click();
      await at.titleAction("Accept the Candidate").click();
      // The file is shown before the edit is made, and the difference is closed after it.
      await page.locator(".tab", { hasText: "candidate" }).waitFor({ state: "detached" });
      await page.locator(".tab.dirty").waitFor();
      assert.equal(fs.readFileSync(file, "utf8"), before, "it is the person who saves");
      await at.line("__shared__").click();
      await page.keyboard.press("Control+s");
      await at.until("the text on disk", () => fs.readFileSync(file, "utf8") !== before);
      await at.line(/registers/).waitFor();
    });
    await at.check("a plan is a page too, and of what it says nothing is tried", async () => {
      await at.line("__syncthreads").click({ position: { x: 20, y: 8 } });
      await at.command("StitchCUDA: Plan Only");
      const toast = at.toast(/nothing was attempted/);
      await toast.waitFor();
      await toast.locator("a.monaco-button, .monaco-text-button", { hasText: "Show the Plan" }).first().click();
      await page.locator(".tab.active", { hasText: "Plan: transpose.cu" }).waitFor();
      await page.locator(".pane-body .monaco-list-row", { hasText: "Finished" }).waitFor();
      await at.shot("plan");
    });
    await at.check("heat is drawn in the gutter", async () => {
      await at.inTheDark();
      await at.command("View: Close Editors in Other Groups");
      await page.locator(".tab", { hasText: "Evidence" }).waitFor({ state: "detached" });
      await at.command("StitchCUDA: Profile This Program");
      await page.locator(".pane-body .monaco-list-row", { hasText: /Profile transpose.cu.*done/ }).waitFor();
      await at.until(
        "lines that are hot and lines that are less so",
        async () => (await page.locator(".glyph-margin-widgets .cgmr").count()) >= 3,
      );
      // A click may have scrolled a long line; the pointer on a hot one tells why it is.
      await at.editor.locator(".view-lines").click({ position: { x: 60, y: 20 } });
      await page.keyboard.press("Control+Home");
      await at.hover(/tile\[threadIdx.x\]/, 90, "sectors");
      await at.shot("heat");
    });
    await at.check("what Nsight Compute recorded on an H200 is heat by its samples", async () => {
      await at.command("StitchCUDA: Import a Profile…");
      await at.chooseFile(recorded(folder, extension));
      await at.toast("speaks of lines.cu").waitFor();
      await at.open("lines.cu");
      await at.until("lines with heat", async () => (await page.locator(".glyph-margin-widgets .cgmr").count()) >= 3);
      await at.hover(/out\[i\]/, 30, "of the kernel's samples");
      await at.shot("imported");
    });
    await at.check("the walkthrough has three steps", async () => {
      await at.command("StitchCUDA: Open the Walkthrough");
      const steps = page.locator(".gettingStartedContainer .getting-started-step");
      await steps.first().waitFor();
      assert.equal(await steps.count(), 3);
      await at.shot("walkthrough");
    });
  } finally {
    await browser.close();
    editor.stop();
  }
  return at;
}
