// The key for a model, in the editor's secret store. It goes to the server in its environment: neither settings nor a trace hold it.
import * as vscode from "vscode";

const NAME = "stitchcuda.apiKey";

/** What the key adds to the server's environment. A workspace that is not trusted is given none. */
export async function secretEnvironment(context: vscode.ExtensionContext): Promise<Record<string, string>> {
  const key = vscode.workspace.isTrusted ? await context.secrets.get(NAME) : undefined;
  return key ? { STITCHCUDA_API_KEY: key } : {};
}

/** Whether there is a key. */
export async function hasKey(context: vscode.ExtensionContext): Promise<boolean> {
  return (await context.secrets.get(NAME)) !== undefined;
}

/** Asks for a key and keeps it. `given` is for who has it already. */
export async function setKey(context: vscode.ExtensionContext, given?: string): Promise<boolean> {
  const typed =
    given ??
    (await vscode.window.showInputBox({
      title: "Key for the Model's Endpoint",
      prompt: "It is kept in the editor's secret store, and given to the server only.",
      password: true,
      ignoreFocusOut: true,
      validateInput: (text) => (/^[\x21-\x7e]*$/.test(text.trim()) ? undefined : "A key has no spaces, and no other signs than ASCII's."),
    }));
  const key = typed?.trim();
  if (!key) {
    return false;
  }
  // The same again restarts no server, with what runs there.
  if ((await context.secrets.get(NAME)) !== key) {
    await context.secrets.store(NAME, key);
  }
  return true;
}

/** Forgets the key, and says so: nothing else that is seen changes by it. */
export async function removeKey(context: vscode.ExtensionContext): Promise<void> {
  if (!(await hasKey(context))) {
    // The server is left alone, and with it what runs there.
    void vscode.window.showInformationMessage("There is no key to remove.");
    return;
  }
  await context.secrets.delete(NAME);
  void vscode.window.showInformationMessage("The key is removed from the editor's secret store.");
}
