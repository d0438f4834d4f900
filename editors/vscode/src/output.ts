// Output channels that exist only once something is written to them, and that never come up by themselves.
import * as vscode from "vscode";

type Lazy = vscode.LogOutputChannel;

/** A log channel with this name, made when it is first used. */
export function lazyChannel(name: string): Lazy {
  let made: Lazy | undefined;
  const level = new vscode.EventEmitter<vscode.LogLevel>();
  const make = (): Lazy => {
    if (!made) {
      made = vscode.window.createOutputChannel(name, { log: true });
      made.onDidChangeLogLevel((now) => level.fire(now));
    }
    return made;
  };
  return {
    name,
    // Asked by the client before anything is written; that is no reason to make the channel.
    get logLevel() {
      return made?.logLevel ?? vscode.env.logLevel;
    },
    onDidChangeLogLevel: level.event,
    append: (text) => make().append(text),
    appendLine: (text) => make().appendLine(text),
    replace: (text) => make().replace(text),
    clear: () => made?.clear(),
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- the interface has both overloads
    show: () => make().show(true),
    hide: () => made?.hide(),
    trace: (text, ...more) => make().trace(text, ...(more as unknown[])),
    debug: (text, ...more) => make().debug(text, ...(more as unknown[])),
    info: (text, ...more) => make().info(text, ...(more as unknown[])),
    warn: (text, ...more) => make().warn(text, ...(more as unknown[])),
    error: (text, ...more) => make().error(text, ...(more as unknown[])),
    dispose: () => {
      made?.dispose();
      level.dispose();
    },
  };
}

/**
 * A channel for the messages between editor and server. The client traces to a channel whose level is `Trace`; ours has it where
 * `stitchcuda.trace.server` is not `off`, so that a setting decides, as with other servers.
 */
export function traceChannel(name: string): Lazy {
  let made: vscode.OutputChannel | undefined;
  const make = (): vscode.OutputChannel => (made ??= vscode.window.createOutputChannel(name));
  const write = (text: unknown): void => make().appendLine(String(text));
  const level = (): vscode.LogLevel =>
    vscode.workspace.getConfiguration("stitchcuda").get<string>("trace.server", "off") === "off"
      ? vscode.LogLevel.Off
      : vscode.LogLevel.Trace;
  const changed = new vscode.EventEmitter<vscode.LogLevel>();
  const heard = vscode.workspace.onDidChangeConfiguration((event) => {
    if (event.affectsConfiguration("stitchcuda.trace")) {
      changed.fire(level());
    }
  });
  return {
    name,
    get logLevel() {
      return level();
    },
    onDidChangeLogLevel: changed.event,
    append: (text) => make().append(text),
    appendLine: write,
    replace: (text) => make().replace(text),
    clear: () => made?.clear(),
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- the interface has both overloads
    show: () => make().show(true),
    hide: () => made?.hide(),
    trace: write,
    debug: write,
    info: write,
    warn: write,
    error: write,
    dispose: () => {
      heard.dispose();
      changed.dispose();
      made?.dispose();
    },
  };
}
