// Numbers as they are shown.

/** `1.93×`, with the device where it is an estimate. */
export function speedup(gain: number, device: string | undefined): string {
  const estimated = device?.startsWith("sim:") ? ` (estimated, ${device})` : "";
  return `${gain.toFixed(2)}×${estimated}`;
}

/** A number with its unit. */
export function quantity(value: number, unit: "count" | "bytes" | "ratio"): string {
  switch (unit) {
    case "ratio":
      return `${Math.round(value * 100)}%`;
    case "bytes":
      return value >= 1024 ? `${(value / 1024).toFixed(1)} KiB` : `${value} bytes`;
    case "count":
      return String(value);
  }
}
