// The client: how the server is started, what it is told, and what is done with its commands' results.
import * as vscode from "vscode";
import {
  type ClientCapabilities,
  ErrorAction,
  type FeatureState,
  LanguageClient,
  type LanguageClientOptions,
  LSPErrorCodes,
  ResponseError,
  RevealOutputChannelOn,
  type ServerOptions,
  type StaticFeature,
} from "vscode-languageclient/node";
import type { Beside } from "./beside";
import type { Pages } from "./explain";

export const SELECTOR: { scheme: string; language: string }[] = [
  { scheme: "file", language: "cuda-cpp" },
  { scheme: "file", language: "python" },
  { scheme: "untitled", language: "cuda-cpp" },
];

/** Asks for the messages of editors/PROTOCOL.md. */
class AskForPlugin implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    const experimental = (capabilities.experimental ??= {}) as Record<string, unknown>;
    // The editor shows the findings at a place in the same box as its hover.
    experimental.stitchcuda = { jobs: true, review: true, status: true, diagnosticsInHover: true };
  }
  initialize(): void {}
  getState(): FeatureState {
    return { kind: "static" };
  }
  clear(): void {}
}

/** Where what the client says goes. */
export interface Channels {
  output: vscode.LogOutputChannel;
  trace: vscode.LogOutputChannel;
  beside: Beside;
  pages: Pages;
}

/** A client for the server at `command`, not started yet. */
export function makeClient(command: string, environment: Record<string, string>, channels: Channels): LanguageClient {
  const server: ServerOptions = {
    command,
    args: ["lsp"],
    options: { env: { ...process.env, ...environment } },
  };
  const options: LanguageClientOptions = {
    documentSelector: SELECTOR,
    outputChannel: channels.output,
    traceOutputChannel: channels.trace,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    diagnosticCollectionName: "stitchcuda",
    initializationOptions: { workspaceTrusted: vscode.workspace.isTrusted },
    // Servers that pull settings are told by this that there are new ones.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    synchronize: { configurationSection: "stitchcuda" },
    errorHandler: {
      // What can't be written was written to a server that has died. Its end decides: the usual handler gives up for good after a few.
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => usual.closed(),
    },
    middleware: {
      executeCommand: async (name, args, next) => {
        try {
          const result: unknown = await next(name, args);
          if (name === "stitchcuda.explain") {
            await channels.pages.explain(result);
          }
          return result;
        } catch (error) {
          const said = error instanceof Error ? error.message : String(error);
          channels.output.warn(`${name}: ${said}`);
          // Why a request that was right can't be fulfilled the server has shown itself.
          if (!(error instanceof ResponseError && error.code === LSPErrorCodes.RequestFailed)) {
            void vscode.window.showErrorMessage(said);
          }
          return undefined;
        }
      },
      handleDiagnostics: (uri, diagnostics, next) => channels.beside.handle(uri, diagnostics, next),
      // Jobs have a view and an item of their own in the status bar.
      handleWorkDoneProgress: () => {},
    },
  };
  const client = new LanguageClient("stitchcuda", "StitchCUDA", server, options);
  const usual = client.createDefaultErrorHandler();
  client.registerFeature(new AskForPlugin());
  return client;
}
