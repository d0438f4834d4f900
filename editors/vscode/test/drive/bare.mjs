// The package without a server inside, on a machine that has none: it says so, and offers to build one or to name one.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { Workbench } from "./page.mjs";
import { installExtension, openBrowser, startEditor, workbench } from "./workbench.mjs";

/** Gives the editor cargo, which installs into a folder of the test, and nothing else of the person's. */
function builder(out) {
  const tools = path.join(out, "bare-tools");
  fs.rmSync(tools, { recursive: true, force: true });
  fs.mkdirSync(tools, { recursive: true });
  fs.symlinkSync(execFileSync("sh", ["-c", "command -v cargo"], { encoding: "utf8" }).trim(), path.join(tools, "cargo"));
  return {
    PATH: `${tools}:/usr/bin:/bin`,
    CARGO_INSTALL_ROOT: path.join(tools, "installed"),
    CARGO_TARGET_DIR: path.join(tools, "target"),
  };
}

/** Makes a folder a checkout, of a server that is built in seconds: it starts the one that there is. */
function makeCheckout(folder, server) {
  const cli = path.join(folder, "server", "cli");
  fs.mkdirSync(path.join(cli, "src"), { recursive: true });
  const about = 'name = "stitchcuda"\nversion = "0.1.0"\n';
  fs.writeFileSync(path.join(cli, "Cargo.toml"), `[package]\n${about}edition = "2021"\n\n[workspace]\n`);
  fs.writeFileSync(path.join(cli, "Cargo.lock"), `version = 4\n\n[[package]]\n${about}`);
  const program = `use std::os::unix::process::CommandExt;

fn main() {
    let error = std::process::Command::new(${JSON.stringify(server)}).args(std::env::args_os().skip(1)).exec();
    panic!("{error}");
}
`;
  fs.writeFileSync(path.join(cli, "src", "main.rs"), program);
  return folder;
}

export async function bare({ tools, out, vsix, settings, environment, folder: copy }) {
  const server = settings["stitchcuda.server.path"];
  const nothing = { ...environment, ...builder(out) };
  const editor = await startEditor({
    tools,
    out,
    name: "bare",
    settings: {},
    environment: nothing,
    flags: ["--disable-workspace-trust"],
    before: (base) => installExtension(tools, base, vsix, environment),
  });
  const chosen = path.join(out, "bare", "stitchcuda");
  const { browser, page } = await openBrowser({ tools, out, name: "bare" });
  const at = new Workbench(page, out);
  try {
    await page.goto(workbench(editor.host, makeCheckout(copy(), server), [["openFile", path.join(out, "bare", "workspace", "energy.cu")]]));
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
      fs.symlinkSync(server, chosen);
      await at.chooseFile(chosen);
      await at.lens("Optimize").waitFor();
    });
    await at.check("where the one that is named is gone, the one that is built is taken", async () => {
      fs.rmSync(chosen);
      await at.command("StitchCUDA: Restart the Server");
      const toast = at.toast("is not there");
      await toast.waitFor();
      await toast.locator("a.monaco-button, .monaco-text-button", { hasText: "Build It" }).first().click();
      await at.lens("Optimize").waitFor();
      await at.command("StitchCUDA: Debug Information");
      await at.line(/bare-tools.installed.bin.stitchcuda/).waitFor();
    });
  } finally {
    await browser.close();
    editor.stop();
  }
  return at;
}
