// Where the server is: named by the setting, packed with the extension, or in PATH.
import { execFile } from "node:child_process";
import * as fs from "node:fs";
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
    return probe(configured, "named by the setting `stitchcuda.server.path`");
  }
  const bundled = path.join(extensionFolder, "bin", NAME);
  if (fs.existsSync(bundled)) {
    return probe(bundled, "packed with the extension");
  }
  for (const folder of (process.env["PATH"] ?? "").split(path.delimiter).filter(Boolean)) {
    const candidate = path.join(folder, NAME);
    if (fs.existsSync(candidate)) {
      return probe(candidate, "found in PATH");
    }
  }
  throw new NotLocated("The server `stitchcuda` was not found: `stitchcuda.server.path` is unset, this package holds no binary, and there is none in PATH.");
}

function probe(program: string, origin: string): Promise<Located> {
  return new Promise((resolve, reject) => {
    execFile(program, ["--version"], { timeout: LONGEST_PROBE }, (error, stdout) => {
      const version = stdout.trim();
      if (error || !version.startsWith("stitchcuda")) {
        const said = error ? error.message.split("\n", 1)[0] : `it says \`${version.slice(0, 80)}\``;
        reject(new NotLocated(`${program} (${origin}) does not run as a StitchCUDA server: ${said}.`));
      } else {
        resolve({ path: program, origin, version });
      }
    });
  });
}
