// Output channels that exist only once something is written to them, and that never come up by themselves.
import * as vscode from "vscode";

/** A log channel with this name, made when it is first used. */
export function lazyChannel(name: string): vscode.LogOutputChannel {
  let made: vscode.LogOutputChannel | undefined;
  const level = new vscode.EventEmitter<vscode.LogLevel>();
  const make = (): vscode.LogOutputChannel => {
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
