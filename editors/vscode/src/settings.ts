// Settings as they may go into a report that others read.

/** What the manifest says of a setting. */
export interface Setting {
  type?: string | string[];
  enum?: unknown[];
  pattern?: string;
}

/** A setting's value in a line. Free text may hold a secret, as a command line or an address does: of it only what can't be one is shown. */
export function reported(name: string, value: unknown, { type, enum: choices, pattern }: Setting): string {
  const isFree = [type].flat().some((one) => one === "string" || one === "array" || one === "object") && !choices && !pattern;
  if (!isFree || value === null || value === undefined) {
    return JSON.stringify(value);
  }
  if (name.endsWith(".severity") || /\.(path|folder|file|name)$/.test(name)) {
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) {
    return `${value.length} ${value.length === 1 ? "entry" : "entries"}, not shown`;
  }
  return typeof value === "string" && URL.canParse(value) ? `${originOf(value)} (no more is shown)` : "set, not shown";
}

/** The address without a user, a password, a path and what is asked. */
function originOf(address: string): string {
  const { protocol, host } = new URL(address);
  return `${protocol}//${host}`;
}
