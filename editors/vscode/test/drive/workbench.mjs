// VS Code for tests: its server with a Node extension host (the one inside code-server), shown by Chromium.
//
// Everything listens on 127.0.0.1, on ports that the system chose, with profiles of their own, and dies with this process.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

/** How long anything may take to show up, in milliseconds. */
export const WAIT = 120_000;

const SETTINGS = {
  "telemetry.telemetryLevel": "off",
  "workbench.enableExperiments": false,
  "workbench.startupEditor": "none",
  "workbench.reduceMotion": "on",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.tips.enabled": false,
  "chat.disableAIFeatures": true,
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "update.mode": "none",
  "git.enabled": false,
  "remote.autoForwardPorts": false,
  "files.autoSave": "off",
  // What is no part of the extension is out of the pictures' way.
  "window.commandCenter": false,
  "workbench.layoutControl.enabled": false,
  "editor.scrollbar.vertical": "hidden",
  "editor.scrollbar.horizontal": "hidden",
  "editor.overviewRulerBorder": false,
  "workbench.colorCustomizations": { "scrollbarSlider.background": "#80808020" },
  "editor.fontSize": 13,
  "editor.minimap.enabled": false,
  "editor.inlayHints.enabled": "on",
};

/** Installs a packed extension into an editor that does not run yet. */
export function installExtension(tools, base, vsix, environment) {
  const flags = ["--server-data-dir", path.join(base, "server-data"), "--extensions-dir", path.join(base, "extensions")];
  const program = path.join(tools, "bin", "vscode-server");
  const installed = spawnSync(program, ["--install-extension", vsix, "--accept-server-license-terms", ...flags], {
    env: { ...process.env, ...environment },
    encoding: "utf8",
  });
  if (installed.status !== 0) {
    throw new Error(`the extension could not be installed: ${installed.stdout}${installed.stderr}`);
  }
}

/** An editor that runs: its `host`, and what stops it. `flags` go to its server; `before` is done in its folder first. */
export async function startEditor({ tools, out, name, settings, environment, flags, before }) {
  const base = path.join(out, name);
  fs.rmSync(base, { recursive: true, force: true });
  const profile = path.join(base, "profile");
  // A remote window takes what names programs from the machine's settings, and may start extensions before it has the user's.
  for (const of of ["User", "Machine"]) {
    fs.mkdirSync(path.join(profile, of), { recursive: true });
    fs.writeFileSync(path.join(profile, of, "settings.json"), JSON.stringify({ ...SETTINGS, ...settings }, undefined, 2));
  }
  before?.(base);
  const logFile = path.join(base, "server.log");
  const log = fs.openSync(logFile, "w");
  const server = spawn(
    path.join(tools, "bin", "vscode-server"),
    [
      "--host",
      "127.0.0.1",
      "--port",
      "0",
      "--without-connection-token",
      "--accept-server-license-terms",
      "--disable-telemetry",
      "--telemetry-level",
      "off",
      "--server-data-dir",
      path.join(base, "server-data"),
      "--user-data-dir",
      profile,
      "--extensions-dir",
      path.join(base, "extensions"),
      ...flags,
    ],
    { detached: true, stdio: ["ignore", log, log], env: { ...process.env, ...environment } },
  );
  const stop = () => {
    try {
      process.kill(-server.pid, "SIGKILL");
    } catch {
      // It is gone already.
    }
  };
  process.on("exit", stop);
  for (const end = Date.now() + WAIT; Date.now() < end && server.exitCode === null;) {
    const port = /Extension host agent listening on (\d+)/.exec(fs.readFileSync(logFile, "utf8"))?.[1];
    if (port) {
      return { host: `127.0.0.1:${port}`, stop, base, profile };
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  stop();
  throw new Error(`VS Code's server did not start; see ${logFile}:\n${fs.readFileSync(logFile, "utf8").slice(-2000)}`);
}

/** A browser with one page; what the page says goes to a file. */
export async function openBrowser({ tools, out, name }) {
  const { chromium } = createRequire(path.join(tools, "playwright", "package.json"))("playwright-core");
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  const page = await browser.newPage({ viewport: { width: 1440, height: 810 } });
  page.setDefaultTimeout(WAIT);
  const log = fs.createWriteStream(path.join(out, name, "browser.log"));
  page.on("console", (message) => log.write(`${message.type()}: ${message.text()}\n`));
  return { browser, page };
}

/** The address of the workbench with a folder open. `payload` is what VS Code's own web embedding reads. */
export function workbench(host, folder, payload = []) {
  const remote = (file) => `vscode-remote://${host}${file}`;
  const pairs = JSON.stringify(payload.map(([key, value]) => [key, value.startsWith("/") ? remote(value) : value]));
  return `http://${host}/?folder=${encodeURIComponent(folder)}&payload=${encodeURIComponent(pairs)}`;
}
