// The scenarios that run inside the extension host: all of test/suite.ts, in one session.
import path from "node:path";
import { openBrowser, startEditor, WAIT, workbench } from "./workbench.mjs";

/** How long all of them may take, in milliseconds. */
const LONGEST = 15 * 60_000;

export async function api({ tools, out, extension, folder: copy, settings, environment }) {
  const editor = await startEditor({
    tools,
    out,
    name: "api",
    settings,
    environment,
    // A released build runs tests in the extension host only with this driver.
    flags: ["--enable-smoke-test-driver", "--disable-workspace-trust"],
  });
  const folder = copy();
  const { browser, page } = await openBrowser({ tools, out, name: "api" });
  let passed = 0;
  let failed = 0;
  try {
    // The workbench calls these two: for each line of the extension host's console, and at the end.
    let done;
    const finished = new Promise((resolve) => (done = resolve));
    await page.exposeFunction("codeAutomationLog", (_, args) => {
      const line = String(args[0]);
      if (line.startsWith("[test] ")) {
        console.log(line.slice("[test] ".length));
        passed += Number(line.startsWith("[test] ok "));
        failed += Number(line.startsWith("[test] FAIL "));
      }
    });
    await page.exposeFunction("codeAutomationExit", (code) => done(code));
    await page.goto(
      workbench(editor.host, folder, [
        ["extensionDevelopmentPath", extension],
        ["extensionTestsPath", path.join(extension, "out", "suite.js")],
        ["skipWelcome", "true"],
      ]),
      { timeout: WAIT },
    );
    const code = await Promise.race([finished, new Promise((resolve) => setTimeout(resolve, LONGEST, "too late").unref())]);
    if (code !== 0) {
      await page.screenshot({ path: path.join(out, "api-failed.png") }).catch(() => {});
      failed = Math.max(failed, 1);
      console.log(`the scenarios in the extension host ended with: ${code}`);
    }
  } finally {
    await browser.close();
    editor.stop();
  }
  return { passed, failed };
}
