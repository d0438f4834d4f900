// What helps to find a fault: versions, where the server is, its state, the settings that differ. No key, no text of a file.
import * as vscode from "vscode";
import type { Located } from "./locate";
import type { Status } from "./protocol";

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
    contributes: { configuration: { properties: Record<string, unknown> }[] };
  };
  const names = manifest.contributes.configuration.flatMap((section) => Object.keys(section.properties));
  const configuration = vscode.workspace.getConfiguration();
  return names.flatMap((name) => {
    const known = configuration.inspect(name);
    const value: unknown = configuration.get(name);
    return known && JSON.stringify(value) !== JSON.stringify(known.defaultValue) ? [`${name}: ${JSON.stringify(value)}`] : [];
  });
}
