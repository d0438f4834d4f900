// What helps to find a fault: versions, where the server is, its state, the settings that differ. No key, no text of a file, nothing of a
// setting that may hold a secret.
import * as vscode from "vscode";
import type { Located } from "./locate";
import type { Status } from "./protocol";
import { reported, type Setting } from "./settings";

export function debugInformation(
  context: vscode.ExtensionContext,
  server: Located | undefined,
  status: Status | undefined,
  hasKey: boolean,
): string {
  const changed = changedSettings(context);
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
    status ? JSON.stringify(status, undefined, 2) : "none",
    "",
    "## Settings that differ",
    changed.length > 0 ? changed.join("\n") : "none",
    "",
  ].join("\n");
}

function changedSettings(context: vscode.ExtensionContext): string[] {
  const manifest = context.extension.packageJSON as {
    contributes: { configuration: { properties: Record<string, Setting> }[] };
  };
  const settings = manifest.contributes.configuration.flatMap((section) => Object.entries(section.properties));
  const configuration = vscode.workspace.getConfiguration();
  return settings.flatMap(([name, setting]) => {
    const known = configuration.inspect(name);
    const value: unknown = configuration.get(name);
    return known && JSON.stringify(value) !== JSON.stringify(known.defaultValue) ? [`${name}: ${reported(name, value, setting)}`] : [];
  });
}
