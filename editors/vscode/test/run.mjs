#!/usr/bin/env node
// Tests of the extension in VS Code, as code-server has it.
//
//   node test/run.mjs --tools DIR --out DIR --server FILE --toolkit DIR --endpoint FILE [--vsix FILE] [--bundle FILE] [--only NAME]
//
//   --tools     what `cargo xtask test` has installed: code-server, Node, playwright-core
//   --out       profiles, logs and pictures
//   --server    the binary `stitchcuda`
//   --toolkit   a CUDA toolkit
//   --endpoint  the binary `scripted_endpoint`
//   --vsix      the packed extension, for the scenarios that click
//   --bundle    the extension packed with a server inside
//   --only      one of the sessions: api, ui, trust, bare, bundled
//
// Exit status 0 when all passed, 1 when something failed, 2 when the editor could not be started.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { api } from "./drive/api.mjs";
import { bare } from "./drive/bare.mjs";
import { bundled } from "./drive/bundled.mjs";
import { trust } from "./drive/trust.mjs";
import { ui } from "./drive/ui.mjs";

const string = { type: "string" };
const { values } = parseArgs({
  options: { tools: string, out: string, server: string, toolkit: string, endpoint: string, vsix: string, bundle: string, only: string },
});
for (const name of ["tools", "out", "server", "toolkit", "endpoint"]) {
  if (!values[name]) {
    console.error(`--${name} is missing`);
    process.exit(2);
  }
}
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => process.exit(2));
}
const extension = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const tools = path.resolve(values.tools);
const out = path.resolve(values.out);
fs.mkdirSync(out, { recursive: true });

function found(program) {
  try {
    return execFileSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim();
  } catch {
    return "";
  }
}

/** A copy of the workspace of this name, which a session may change. */
function workspace(name) {
  const folder = path.join(out, name, "workspace");
  fs.rmSync(folder, { recursive: true, force: true });
  fs.cpSync(path.join(extension, "test", "workspace"), folder, { recursive: true });
  return folder;
}

function surroundings(name) {
  const home = path.join(out, `${name}-home`);
  fs.rmSync(home, { recursive: true, force: true });
  const pyright = path.join(tools, "pyright", "node_modules", "pyright", "langserver.index.js");
  return {
    // Nothing of this machine's settings and runs.
    STITCHCUDA_CONFIG_DIR: path.join(home, "config"),
    STITCHCUDA_STATE_DIR: path.join(home, "state"),
    STITCHCUDA_CACHE_DIR: path.join(home, "cache"),
    STITCHCUDA_DEVICE: "sim:h200",
    CUDA_HOME: path.resolve(values.toolkit),
    STITCHCUDA_TEST_ENDPOINT: path.resolve(values.endpoint),
    STITCHCUDA_TEST_LLM: path.join(extension, "test", "llm"),
    STITCHCUDA_TEST_CLANGD: ["clangd-22", "clangd"].map(found).find(Boolean) ?? "",
    STITCHCUDA_TEST_PYRIGHT: fs.existsSync(pyright) ? pyright : "",
    ...(process.env.STITCHCUDA_TEST_ONLY ? { STITCHCUDA_TEST_ONLY: process.env.STITCHCUDA_TEST_ONLY } : {}),
  };
}

const sessions = { api, ui, trust, bare, bundled };
/** What each needs besides. */
const packages = { ui: "vsix", trust: "vsix", bare: "vsix", bundled: "bundle" };
let passed = 0;
let failed = 0;
for (const [name, session] of Object.entries(sessions)) {
  if (values.only && values.only !== name) {
    continue;
  }
  const wanted = packages[name];
  if (wanted && !values[wanted]) {
    console.log(`SKIPPED ${name}: no --${wanted}`);
    continue;
  }
  const begun = Date.now();
  try {
    const environment = surroundings(name);
    const settings = { "stitchcuda.server.path": path.resolve(values.server) };
    const result = await session({
      tools,
      out,
      extension,
      settings,
      environment,
      folder: () => workspace(name),
      vsix: values.vsix && path.resolve(values.vsix),
      bundle: values.bundle && path.resolve(values.bundle),
    });
    passed += result.passed;
    failed += result.failed;
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.stack ?? error}`);
  }
  console.log(`${name}: ${((Date.now() - begun) / 1000).toFixed(0)} s`);
}
console.log(`VS Code: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
