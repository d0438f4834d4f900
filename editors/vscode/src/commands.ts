// The commands of the palette and the menus. Those of the server itself are made by the client.
import * as vscode from "vscode";
import { buildServer } from "./build";
import { showEvidence } from "./evidence";
import type { Extension } from "./extension";
import { cancelJob, type Job, listRuns, pause, readRun, type RunRef } from "./protocol";
import type { Report } from "./report";
import { pickAgainst } from "./results";
import { runOf } from "./review";
import { removeKey, setKey } from "./secrets";
import { Refused } from "./shown";
import { speedup } from "./words";

type Command = (...args: never[]) => unknown;

export function registerCommands(extension: Extension): vscode.Disposable[] {
  const { context, reviews, shown } = extension;
  const commands: Record<string, Command> = {
    "stitchcuda.optimizeSelection": async () => onSelection(extension, "stitchcuda.optimize", await shown.file()),
    "stitchcuda.planSelection": async () => onSelection(extension, "stitchcuda.plan", await shown.file()),
    "stitchcuda.verifyFile": async (against?: unknown) => verify(extension, await shown.file(), against),
    "stitchcuda.showVerdict": (job?: Job) => extension.results.showVerdict(job),
    "stitchcuda.compileFile": async () => serverCommand(extension, "stitchcuda.recompile", uriOf(extension, await shown.file())),
    "stitchcuda.profileFile": async () => profile(extension, await shown.file()),
    "stitchcuda.importProfileFile": (file?: unknown) => importProfile(extension, file),
    "stitchcuda.toggleHeat": () => toggleHeat(extension),
    "stitchcuda.togglePause": () => togglePause(extension),
    "stitchcuda.cancelJob": (job?: Job) => cancel(extension, job),
    "stitchcuda.reviewCandidate": (of?: unknown) => onRun(extension, of, (run) => reviews.open(run)),
    "stitchcuda.acceptCandidate": (of?: unknown) => onRun(extension, of, (run) => reviews.accept(run)),
    "stitchcuda.rejectCandidate": (of?: unknown) => onRun(extension, of, (run) => reviews.reject(run)),
    "stitchcuda.showEvidence": (of?: unknown) => onRun(extension, of, (run) => showReport(extension, run)),
    "stitchcuda.openRun": () => openRun(extension),
    "stitchcuda.setKey": (key?: string) => setKey(context, typeof key === "string" ? key : undefined),
    "stitchcuda.removeKey": () => removeKey(context),
    "stitchcuda.restart": () => extension.restarts.request(),
    "stitchcuda.buildServer": () => buildServer(context),
    "stitchcuda.showLog": () => extension.output.show(),
    "stitchcuda.showTrace": () => extension.trace.show(),
    "stitchcuda.doctor": () => extension.pages.show("doctor", "Doctor.txt"),
    "stitchcuda.debugInformation": () => extension.pages.show("debug", "Debug Information.md"),
    "stitchcuda.walkthrough": () =>
      vscode.commands.executeCommand("workbench.action.openWalkthrough", `${context.extension.id}#stitchcuda.start`, false),
  };
  return Object.entries(commands).map(([name, command]) =>
    vscode.commands.registerCommand(name, async (...args: never[]) => {
      try {
        return await command(...args);
      } catch (error) {
        const show = error instanceof Refused ? vscode.window.showInformationMessage : vscode.window.showErrorMessage;
        void show(error instanceof Error ? error.message : String(error));
        return undefined;
      }
    }),
  );
}

function uriOf(extension: Extension, editor: vscode.TextEditor): string {
  return extension.running().code2ProtocolConverter.asUri(editor.document.uri);
}

function serverCommand(extension: Extension, command: string, argument: unknown): Thenable<unknown> {
  extension.running();
  return vscode.commands.executeCommand(command, argument);
}

/** What is selected, or what the cursor is in. */
function onSelection(extension: Extension, command: string, editor: vscode.TextEditor, more: object = {}): Thenable<unknown> {
  const range = extension.running().code2ProtocolConverter.asRange(editor.selection);
  return serverCommand(extension, command, { uri: uriOf(extension, editor), range, ...more });
}

/** Against what is given, as the server takes it, or against what the person picks. */
async function verify(extension: Extension, editor: vscode.TextEditor, given: unknown): Promise<unknown> {
  const isAgainst = typeof given === "object" && given !== null && ("candidate" in given || "reference" in given);
  const against = isAgainst ? given : await pickAgainst(extension, editor.document);
  return against && onSelection(extension, "stitchcuda.verify", editor, against);
}

/** Heat is what a profile is for, so it is turned on. */
async function turnHeatOn({ heat }: Extension): Promise<void> {
  if (!heat.isOn) {
    await heat.toggle();
  }
}

/** Heat that is wanted and can't be had yet is said to be so: nothing else shows that it is on. */
async function toggleHeat({ heat, client }: Extension): Promise<void> {
  await heat.toggle();
  if (heat.isOn && !client?.isRunning()) {
    throw new Refused("Heat is on, and is shown as soon as the StitchCUDA server runs. `StitchCUDA: Restart the Server` starts it.");
  }
  if (heat.isOn && !heat.isSeen()) {
    throw new Refused("Heat is on, but no line that is shown has numbers of this kind. `StitchCUDA: Profile This Program` gets them.");
  }
}

/** Told for a moment: the language status, which shows it for longer, is seldom open. */
async function togglePause(extension: Extension): Promise<void> {
  const { paused } = await extension.running().sendRequest(pause, { paused: !extension.status.last?.paused });
  const told = paused ? "nothing is compiled by itself until it is resumed" : "files are compiled when they are saved";
  vscode.window.setStatusBarMessage(`StitchCUDA: ${told}`, 5_000);
}

/** What profilers write. */
const PROFILES = { Profiles: ["ncu-rep", "nsys-rep", "sqlite", "csv", "json", "gz", "xml", "txt"], "All Files": ["*"] };

/** Reads what a profiler wrote: the file that is given, or one that the person picks. */
async function importProfile(extension: Extension, given: unknown): Promise<unknown> {
  const client = extension.running();
  const pick = { title: "Import a Profile", openLabel: "Import", filters: PROFILES };
  const file = given instanceof vscode.Uri ? given : (await vscode.window.showOpenDialog(pick))?.[0];
  if (!file) {
    return undefined;
  }
  await turnHeatOn(extension);
  return serverCommand(extension, "stitchcuda.importProfile", client.code2ProtocolConverter.asUri(file));
}

async function profile(extension: Extension, editor: vscode.TextEditor): Promise<unknown> {
  await editor.document.save();
  await turnHeatOn(extension);
  return serverCommand(extension, "stitchcuda.profile", uriOf(extension, editor));
}

async function cancel(extension: Extension, given?: Job): Promise<boolean> {
  const job = given ?? (await pickRunning(extension));
  if (!job) {
    return false;
  }
  const { cancelled } = await extension.running().sendRequest(cancelJob, { job: job.id });
  if (!cancelled) {
    throw new Refused(`${job.title} had ended already.`);
  }
  return true;
}

async function pickRunning(extension: Extension): Promise<Job | undefined> {
  const running = extension.jobs.list().filter((job) => job.state === "running" || job.state === "queued");
  if (running.length === 0) {
    throw new Refused("No job runs.");
  }
  const items = running.map((job) => ({ label: job.title, description: job.stage ?? job.state, job }));
  return items.length > 1 ? (await vscode.window.showQuickPick(items, { title: "Cancel Which Job?" }))?.job : running[0];
}

/** With the run that is meant: the one given, the one that is shown, or one that the person picks. */
async function onRun<T>(extension: Extension, of: unknown, use: (run: { run: string; attempt?: number }) => T): Promise<T | undefined> {
  const run = runOf(of) ?? (await pickRun(extension));
  return run ? use(run) : undefined;
}

async function showReport(extension: Extension, { run }: RunRef): Promise<void> {
  const report = await extension.running().sendRequest(readRun, { run });
  showEvidence(run, report as unknown as Report);
}

/** The report of a run that the person picks, whatever is shown. */
async function openRun(extension: Extension): Promise<void> {
  const run = await pickRun(extension);
  if (run) {
    await showReport(extension, run);
  }
}

async function pickRun(extension: Extension): Promise<{ run: string } | undefined> {
  const { runs } = await extension.running().sendRequest(listRuns, {});
  const items = runs.reverse().map((run) => ({
    label: run.target,
    description: run.gain ? speedup(run.gain, run.device) : "nothing better",
    detail: `${run.started} · ${run.attempts} attempts · ${run.engine} · ${run.id}`,
    run: run.id,
  }));
  if (items.length === 0) {
    throw new Refused("There are no runs yet. Select a kernel and optimize it.");
  }
  return vscode.window.showQuickPick(items, { title: "Which Run?" });
}
