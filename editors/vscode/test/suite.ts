// Runs the scenarios one after the other, in the extension host of the editor. A line of the console that begins with `[test] ` is shown.
import * as vscode from "vscode";
import { beside } from "./scenarios/beside";
import { editing } from "./scenarios/editing";
import { optimizing } from "./scenarios/optimizing";
import { reading } from "./scenarios/reading";
import { surroundings } from "./scenarios/surroundings";

export type Scenarios = Record<string, () => Promise<unknown>>;

const log = (line: string): void => console.log(`[test] ${line}`);

export async function run(): Promise<void> {
  await vscode.extensions.getExtension("stitchcuda.stitchcuda")?.activate();
  const all: Scenarios = { ...reading, ...editing, ...optimizing, ...beside, ...surroundings };
  const wanted = process.env.STITCHCUDA_TEST_ONLY;
  let failed = 0;
  for (const [name, scenario] of Object.entries(all)) {
    if (wanted && !new RegExp(wanted).test(name)) {
      continue;
    }
    const begun = Date.now();
    const seconds = (): string => `${((Date.now() - begun) / 1000).toFixed(1)} s`;
    try {
      const said = await scenario();
      log(`ok   ${name}${typeof said === "string" && said ? `: ${said}` : ""} (${seconds()})`);
    } catch (error) {
      failed += 1;
      log(`FAIL ${name} (${seconds()}): ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
  }
  if (failed > 0) {
    throw new Error(`${failed} scenarios failed`);
  }
}
