// Offers to build the server where there is none: in a terminal, where a person sees what happens.
import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { installedByCargo, locate } from "./locate";

/** Says that there is no server and what can be done about it. */
export async function offerBuild(context: vscode.ExtensionContext, said: string): Promise<void> {
  const build = "Build It";
  const choose = "Choose It…";
  // In a workspace that is not trusted nothing is built, and its settings are not taken.
  const offers = vscode.workspace.isTrusted ? [build, choose] : [choose];
  const answer = await vscode.window.showErrorMessage(said, ...offers);
  if (answer === build) {
    await buildServer(context);
  } else if (answer === choose) {
    await chooseServer();
  }
}

/** Takes a program that the person points at. */
async function chooseServer(): Promise<void> {
  const chosen = await vscode.window.showOpenDialog({ title: "Choose the Program `stitchcuda`", openLabel: "Take It" });
  const program = chosen?.[0]?.fsPath;
  if (program) {
    await nameServer(program);
  }
}

/** What the setting names. */
export function namedServer(): string {
  return vscode.workspace.getConfiguration("stitchcuda").get<string | null>("server.path")?.trim() ?? "";
}

/** Has the setting name a program; whether that can serve is seen when it is started for that. */
async function nameServer(program: string): Promise<void> {
  const configuration = vscode.workspace.getConfiguration("stitchcuda");
  // Of the machine, where programs are named; but what the workspace names would go before that.
  const isOfWorkspace = configuration.inspect("server.path")?.workspaceValue !== undefined;
  const target = isOfWorkspace ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
  await configuration.update("server.path", program, target);
}

/** Takes what was built, also where the setting, the package or PATH has another, which could not serve. */
async function takeBuilt(context: vscode.ExtensionContext): Promise<void> {
  const built = installedByCargo();
  const found = await locate(namedServer(), context.extensionPath).catch(() => undefined);
  if (found?.path === built || !fs.existsSync(built)) {
    await vscode.commands.executeCommand("stitchcuda.restart");
  } else {
    await nameServer(built);
  }
}

/** Builds and installs the server from a checkout with `cargo install`. */
export async function buildServer(context: vscode.ExtensionContext): Promise<void> {
  const checkout = checkoutOf(context) ?? (await ask());
  if (!checkout) {
    return;
  }
  const source = path.join(checkout, "server", "cli");
  const execution = new vscode.ProcessExecution("cargo", ["install", "--locked", "--path", source], { cwd: checkout });
  const task = new vscode.Task({ type: "stitchcuda" }, vscode.TaskScope.Workspace, "build the server", "StitchCUDA", execution);
  const running = await vscode.tasks.executeTask(task);
  const ended = vscode.tasks.onDidEndTaskProcess((event) => {
    if (event.execution === running) {
      ended.dispose();
      if (event.exitCode === 0) {
        takeBuilt(context).catch((error: unknown) => void vscode.window.showErrorMessage(String(error)));
      }
    }
  });
}

/** The checkout that the extension itself, or an open folder, is part of. */
function checkoutOf(context: vscode.ExtensionContext): string | undefined {
  const open = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  return [path.join(context.extensionPath, "..", ".."), ...open].find(isCheckout);
}

async function ask(): Promise<string | undefined> {
  const chosen = await vscode.window.showOpenDialog({
    title: "Choose a Checkout of StitchCUDA",
    canSelectFiles: false,
    canSelectFolders: true,
  });
  const folder = chosen?.[0]?.fsPath;
  if (folder && !isCheckout(folder)) {
    void vscode.window.showErrorMessage(`${folder} is no checkout of StitchCUDA: it has no server/cli/Cargo.toml.`);
    return undefined;
  }
  return folder;
}

function isCheckout(folder: string): boolean {
  const manifest = path.join(folder, "server", "cli", "Cargo.toml");
  return fs.existsSync(manifest) && fs.readFileSync(manifest, "utf8").includes('name = "stitchcuda"');
}
