// What the scenarios share: waiting, documents in their first state, the extension, the scripted endpoint.
import * as assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import * as readline from "node:readline";
import * as vscode from "vscode";
import type { Extension } from "../src/extension";
import type { Job } from "../src/protocol";

/** Long enough for a loaded machine, in milliseconds; in seconds in the variable, for who looks for a fault. */
export const PATIENCE = Number(process.env.STITCHCUDA_TEST_PATIENCE ?? 120) * 1000;

/** Waits until `body` gives something. */
export async function until<T>(what: string, body: () => T | Promise<T>, patience = PATIENCE): Promise<NonNullable<T>> {
  for (const end = Date.now() + patience; ;) {
    const value = await body();
    if (value) {
      return value;
    }
    if (Date.now() > end) {
      throw new Error(`${what} did not come in ${patience / 1000} s`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What a scenario says for which something is missing. On the machines of CI that is a failure. */
export function skipped(missing: string): string {
  assert.ok(!process.env.STITCHCUDA_TEST_REQUIRE_EDITORS, `${missing}, and STITCHCUDA_TEST_REQUIRE_EDITORS is set`);
  return `SKIPPED: ${missing}`;
}

export function folder(): string {
  const first = vscode.workspace.workspaceFolders?.[0];
  assert.ok(first, "a folder is open");
  return first.uri.fsPath;
}

export function extension(): Extension {
  const found = vscode.extensions.getExtension<Extension>("stitchcuda.stitchcuda");
  assert.ok(found?.isActive, "the extension is active");
  return found.exports;
}

/** Opens a file of the workspace with this text, saved. */
export async function open(name: string, text?: string): Promise<vscode.TextEditor> {
  const file = path.join(folder(), name);
  if (text !== undefined) {
    fs.writeFileSync(file, text);
  }
  const document = await vscode.workspace.openTextDocument(file);
  await until("the text on disk", () => text === undefined || document.getText() === text);
  return vscode.window.showTextDocument(document);
}

export function textOf(name: string): string {
  return fs.readFileSync(path.join(folder(), name), "utf8");
}

export function ours(uri: vscode.Uri): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter((found) => found.source === "stitchcuda");
}

export function codeOf(diagnostic: vscode.Diagnostic): string {
  const { code } = diagnostic;
  return String(typeof code === "object" ? code.value : code);
}

/** The findings of this code, once there are any. */
export function findings(uri: vscode.Uri, code: string): Promise<vscode.Diagnostic[]> {
  return until(`a finding ${code}`, () => {
    const found = ours(uri).filter((one) => codeOf(one) === code);
    return found.length > 0 ? found : undefined;
  });
}

/** Waits for a job that fits; the jobs are those that the view has. */
export function job(what: string, fits: (job: Job) => boolean): Promise<Job> {
  return until(what, () => extension().jobs.list().find(fits));
}

/** The newest job that optimises, which is started by this. */
export async function startOptimizing(editor: vscode.TextEditor, text: string): Promise<number> {
  const offset = editor.document.getText().indexOf(text);
  assert.ok(offset >= 0, `${text} is in the file`);
  const at = editor.document.positionAt(offset);
  editor.selection = new vscode.Selection(at, at.translate(0, 3));
  const before = extension()
    .jobs.list()
    .map((one) => one.id);
  await vscode.commands.executeCommand("stitchcuda.optimizeSelection");
  const started = await job("the job", (one) => one.kind === "optimize" && !before.includes(one.id));
  return started.id;
}

/** Waits for the end of a job. */
export function ended(id: number): Promise<Job> {
  return job(
    `the end of job ${id}`,
    (one) => one.id === id && ["done", "failed", "cancelled"].includes(one.state) && (one.state !== "done" || one.decision !== undefined),
  );
}

/** What the endpoint was asked. */
export interface Question {
  authorization: string | null;
  text: string;
}

/** A scripted endpoint, with these answers in turn. */
export class Endpoint {
  readonly questions: Question[] = [];
  private constructor(
    private readonly process: ChildProcess,
    readonly base: string,
  ) {}

  static async start(answers: string): Promise<Endpoint> {
    const program = process.env.STITCHCUDA_TEST_ENDPOINT;
    assert.ok(program, "STITCHCUDA_TEST_ENDPOINT names the scripted endpoint");
    const child = spawn(program, [answers], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = readline.createInterface({ input: child.stdout });
    const base = await new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      child.once("exit", () => reject(new Error("the scripted endpoint ended")));
    });
    const endpoint = new Endpoint(child, base);
    lines.on("line", (line) => endpoint.questions.push(JSON.parse(line) as Question));
    return endpoint;
  }

  stop(): void {
    this.process.stdin?.end();
  }
}

/** Changes a setting of the workspace; `undefined` takes it back. */
export async function set(name: string, value: unknown): Promise<void> {
  await vscode.workspace.getConfiguration("stitchcuda").update(name, value, vscode.ConfigurationTarget.Workspace);
}

/** What is said to the person while `body` is at work, in the messages that pop up. They are shown all the same. */
export async function said(body: (messages: string[]) => Thenable<unknown>): Promise<string[]> {
  const messages: string[] = [];
  const names = ["showInformationMessage", "showWarningMessage", "showErrorMessage"] as const;
  const window = vscode.window as unknown as Record<string, (message: string, ...more: unknown[]) => unknown>;
  const before = names.map((name) => window[name]);
  for (const name of names) {
    const shows = window[name];
    window[name] = (message, ...more) => {
      messages.push(message);
      return shows?.call(vscode.window, message, ...more);
    };
  }
  try {
    await body(messages);
  } finally {
    names.forEach((name, index) => {
      const shows = before[index];
      if (shows) {
        window[name] = shows;
      }
    });
  }
  return messages;
}
