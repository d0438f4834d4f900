// What a report that others read holds of settings.
import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { test } from "node:test";
import { reported, reportedStatus, secretsOf, type Setting } from "../src/settings";

const manifest = JSON.parse(fs.readFileSync(path.join(__dirname, "..", "package.json"), "utf8")) as {
  contributes: { configuration: { properties: Record<string, Setting> }[] };
};
const settings = Object.assign({}, ...manifest.contributes.configuration.map((part) => part.properties)) as Record<string, Setting>;

function of(name: string, value: unknown): string {
  const setting = settings[name];
  assert.ok(setting, `${name} is a setting`);
  return reported(name, value, setting);
}

test("nothing that may be a secret is in it", () => {
  const rows: [string, unknown, string][] = [
    [
      "stitchcuda.model.endpoint",
      "https://me:hunter2@models.example:8443/v1/hunter2?key=hunter2#hunter2",
      "https://models.example:8443 (no more is shown)",
    ],
    ["stitchcuda.model.endpoint", "hunter2", "set, not shown"],
    ["stitchcuda.worker.command", ["ssh", "-o", "hunter2", "gpu01"], "4 entries, not shown"],
    ["stitchcuda.nvcc.extraFlags", ["-DKEY=hunter2"], "1 entry, not shown"],
  ];
  for (const [name, value, expected] of rows) {
    assert.equal(of(name, value), expected);
  }
});

test("what helps to find a fault is", () => {
  assert.equal(of("stitchcuda.nvcc.path", "/opt/cuda/bin/nvcc"), '"/opt/cuda/bin/nvcc"');
  assert.equal(of("stitchcuda.device", "sim:h200"), '"sim:h200"');
  assert.equal(of("stitchcuda.optimize.engine", "llm"), '"llm"');
  assert.equal(of("stitchcuda.compile.onSave", false), "false");
  assert.equal(of("stitchcuda.diagnostics.severity", { "static/*": "off" }), '{"static/*":"off"}');
});

test("free text of a setting that nobody thought of is not", () => {
  for (const [name, setting] of Object.entries(settings)) {
    const isText = [setting.type].flat().includes("string") && !setting.enum && !setting.pattern;
    if (isText && !/\.(path|folder|file|name)$/.test(name)) {
      assert.doesNotMatch(reported(name, "hunter2", setting), /hunter2/, name);
    }
  }
});

test("what the server says of itself is shown without what settings hide", () => {
  const secrets = secretsOf("stitchcuda.nvcc.extraFlags", ["-DKEY=hunter2", "-g"], settings["stitchcuda.nvcc.extraFlags"] ?? {});
  assert.deepEqual(secrets, ["-DKEY=hunter2"]);
  const status = {
    health: "warning",
    message: "`nvcc -g -DKEY=hunter2` can't be run.",
    device: "cuda:0 by `ssh -o hunter2 gpu01 stitchcuda worker`",
    engine: "none: https://me:hunter2@models.example:8443/v1?key=hunter2 can't be asked",
    busy: false,
  };
  assert.deepEqual(JSON.parse(reportedStatus(status, secrets)), {
    health: "warning",
    message: "`nvcc -g …` can't be run.",
    device: "cuda:0 by a command, not shown",
    engine: "none: https://models.example:8443/… can't be asked",
    busy: false,
  });
  assert.deepEqual(JSON.parse(reportedStatus({ device: "sim:h200", toolkit: "CUDA 13.0 (/opt/cuda)" }, [])), {
    device: "sim:h200",
    toolkit: "CUDA 13.0 (/opt/cuda)",
  });
});
