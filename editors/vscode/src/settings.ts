// Settings, and what the server says of itself, as they may go into a report that others read.

/** What the manifest says of a setting. */
export interface Setting {
  type?: string | string[];
  enum?: unknown[];
  pattern?: string;
}

/** Shorter than any secret; a word of a command so short stands in other words too. */
const SHORTEST_SECRET = 4;

/** Whether a setting's value is free text that may hold a secret, as a command line or an address does. */
function isFree(name: string, { type, enum: choices, pattern }: Setting): boolean {
  const isText = [type].flat().some((one) => one === "string" || one === "array" || one === "object") && !choices && !pattern;
  return isText && !name.endsWith(".severity") && !/\.(path|folder|file|name)$/.test(name);
}

/** A setting's value in a line: of free text only what can't be a secret is shown. */
export function reported(name: string, value: unknown, setting: Setting): string {
  if (!isFree(name, setting) || value === null || value === undefined) {
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) {
    return `${value.length} ${value.length === 1 ? "entry" : "entries"}, not shown`;
  }
  return typeof value === "string" && URL.canParse(value) ? `${originOf(value)} (no more is shown)` : "set, not shown";
}

/** The texts of a setting's value that are not to be shown anywhere. */
export function secretsOf(name: string, value: unknown, setting: Setting): string[] {
  const texts = isFree(name, setting) ? [value].flat().filter((text) => typeof text === "string") : [];
  return texts.map((text) => text.trim()).filter((text) => text.length >= SHORTEST_SECRET);
}

/** What the server says of itself: without addresses, the command that leads to a machine, and whatever of the settings is not shown. */
export function reportedStatus(status: object, secrets: string[]): string {
  const longestFirst = [...new Set(secrets)].sort((a, b) => b.length - a.length);
  const clean = (text: string): string => {
    const plain = text.replace(/\b[a-z][a-z0-9+.-]*:\/\/[^\s`'"<>]+/gi, (address) =>
      URL.canParse(address) ? `${originOf(address)}/…` : "(an address)",
    );
    return longestFirst.reduce((left, secret) => left.replaceAll(secret, "…"), plain);
  };
  const shown = (key: string, value: unknown): unknown => {
    if (typeof value !== "string") {
      return value;
    }
    // `cuda:0 by `ssh …``, of a machine that nobody has reached yet; its command may be of a file or a variable that we do not know.
    return clean(key === "device" ? value.replace(/ by `.*`$/s, " by a command, not shown") : value);
  };
  return JSON.stringify(status, shown, 2);
}

/** The address without a user, a password, a path and what is asked. */
function originOf(address: string): string {
  const { protocol, host } = new URL(address);
  return `${protocol}//${host}`;
}
