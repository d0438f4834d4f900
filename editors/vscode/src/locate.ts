// Where the server is: named by the setting, packed with the extension, or in PATH.
import { execFile } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";

/** How long a server may take to say its version, on a machine that has much else to do, in milliseconds. */
const LONGEST_PROBE = 60_000;

export interface Located {
  path: string;
  /** Who says so, in words. */
  origin: string;
  version: string;
}

export class NotLocated extends Error {}

const NAME = process.platform === "win32" ? "stitchcuda.exe" : "stitchcuda";

/** Finds a server that runs, and asks it for its version. What the setting names is never passed over for another. */
export async function locate(configured: string, extensionFolder: string): Promise<Located> {
  if (configured) {
    const named = "named by the setting `stitchcuda.server.path`";
    const isName = !/[\\/]/.test(configured) && configured !== "~";
    return probe(isName ? (inPath(configured) ?? configured) : fromHome(configured), named);
  }
  const bundled = path.join(extensionFolder, "bin", NAME);
  if (fs.existsSync(bundled)) {
    return probe(bundled, "packed with the extension");
  }
  const found = inPath(NAME);
  if (found) {
    return probe(found, "found in PATH");
  }
  throw new NotLocated(
    "The server `stitchcuda` was not found: `stitchcuda.server.path` is unset, this package holds no binary, and there is none in PATH.",
  );
}

/** The first file of this name in PATH. */
function inPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter(Boolean);
  return folders.map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file));
}

/** A path with `~` for the folder of the person, as shells take it. */
function fromHome(given: string): string {
  return given.replace(/^~(?=[\\/]|$)/, os.homedir());
}

/** Where `cargo install` puts the server, by the variables that it heeds. */
export function installedByCargo(): string {
  const { CARGO_INSTALL_ROOT, CARGO_HOME } = process.env;
  return path.join(CARGO_INSTALL_ROOT ?? CARGO_HOME ?? path.join(os.homedir(), ".cargo"), "bin", NAME);
}

/** Sees that a program is there, runs, is ours, and has a language server: each trouble in a sentence, with the setting that helps. */
async function probe(program: string, origin: string): Promise<Located> {
  const refuse = (trouble: string): NotLocated =>
    new NotLocated(`${program} (${origin}) ${trouble.replace(/[.\s]+$/, "")}. Name another with \`stitchcuda.server.path\`, or build one.`);
  if (!fs.existsSync(program)) {
    throw refuse("is not there");
  }
  if (!isExecutable(program)) {
    throw refuse("is not executable");
  }
  const asked = await run(program, ["--version"]);
  const version = asked.out.trim();
  if (asked.trouble !== undefined) {
    throw refuse(`can't be run: it ${asked.trouble}`);
  }
  if (!version.startsWith("stitchcuda")) {
    throw refuse(`is no StitchCUDA server: it says \`${version.slice(0, 80)}\``);
  }
  const served = await run(program, ["lsp", "--help"]);
  if (served.trouble !== undefined) {
    throw refuse(`is too old, or has no language server (${version}): \`stitchcuda lsp\` ${served.trouble}`);
  }
  return { path: program, origin, version };
}

function isExecutable(program: string): boolean {
  try {
    fs.accessSync(program, fs.constants.X_OK);
    return fs.statSync(program).isFile();
  } catch {
    return false;
  }
}

/** What a program prints; where it ends badly, how, with the first line that it said. */
function run(program: string, args: string[]): Promise<{ out: string; trouble?: string }> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: LONGEST_PROBE }, (error, out, err) => {
      if (!error) {
        resolve({ out });
        return;
      }
      const said = err.trim().split("\n", 1)[0];
      const how = typeof error.code === "number" ? `ends with status ${error.code}` : `fails (${error.code ?? error.signal ?? "unknown"})`;
      resolve({ out, trouble: said ? `${how}: ${said}` : how });
    });
  });
}
