// What helps to find a fault: versions, where the server is, its state, the settings that differ. No key, no text of a file, nothing of a
// setting that may hold a secret, also where the server repeats it.
import * as vscode from "vscode";
import type { Located } from "./locate";
import type { Status } from "./protocol";
import { reported, reportedStatus, secretsOf, type Setting } from "./settings";

export function debugInformation(
  context: vscode.ExtensionContext,
  server: Located | undefined,
  status: Status | undefined,
  hasKey: boolean,
): string {
  const settings = settingsOf(context);
  const changed = settings
    .filter(({ name, value }) => isChanged(name, value))
    .map(({ name, value, setting }) => `${name}: ${reported(name, value, setting)}`);
  const secrets = settings.flatMap(({ name, value, setting }) => secretsOf(name, value, setting));
  const rows = [
    `extension: ${(context.extension.packageJSON as { version: string }).version}`,
    `editor: ${vscode.env.appName} ${vscode.version} on ${process.platform} ${process.arch}`,
    `remote: ${vscode.env.remoteName ?? "no"}`,
    `trusted: ${vscode.workspace.isTrusted}`,
    `server: ${server ? `${server.version}, ${server.path}, ${server.origin}` : "none"}`,
    `key in the secret store: ${hasKey ? "yes" : "no"}`,
  ];
  return [
    "# StitchCUDA",
    ...rows,
    "",
    "## Status",
    status ? reportedStatus(status, secrets) : "none",
    "",
    "## Settings that differ",
    changed.length > 0 ? changed.join("\n") : "none",
    "",
  ].join("\n");
}

/** All settings of the manifest with their values. */
function settingsOf(context: vscode.ExtensionContext): { name: string; value: unknown; setting: Setting }[] {
  const manifest = context.extension.packageJSON as {
    contributes: { configuration: { properties: Record<string, Setting> }[] };
  };
  const settings = manifest.contributes.configuration.flatMap((section) => Object.entries(section.properties));
  const configuration = vscode.workspace.getConfiguration();
  return settings.map(([name, setting]) => ({ name, value: configuration.get(name), setting }));
}

function isChanged(name: string, value: unknown): boolean {
  const known = vscode.workspace.getConfiguration().inspect(name);
  return known !== undefined && JSON.stringify(value) !== JSON.stringify(known.defaultValue);
}
