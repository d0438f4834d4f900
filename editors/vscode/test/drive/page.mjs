// What a person does at the workbench: the few selectors of VS Code that the scenarios lean on, in one place.
import path from "node:path";
import { WAIT } from "./workbench.mjs";

export class Workbench {
  passed = 0;
  failed = 0;

  constructor(page, out) {
    this.page = page;
    this.out = out;
    this.editor = page.locator(".editor-instance .monaco-editor").first();
  }

  /** One thing that must hold; a picture is taken where it does not. */
  async check(name, body) {
    const begun = Date.now();
    try {
      const said = await body();
      this.passed += 1;
      console.log(`ok   ${name}${said ? `: ${said}` : ""} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    } catch (error) {
      this.failed += 1;
      console.log(
        `FAIL ${name}: ${String(error.message ?? error)
          .split("\n", 3)
          .join(" ")}`,
      );
      await this.shot(`failed-${this.failed}`).catch(() => {});
    }
  }

  /** A picture for the README or for who looks for a fault. */
  async shot(name) {
    // What fades in is there first; what turns for as long as something runs is not waited for.
    await this.page.evaluate(() => {
      const ending = document.getAnimations().filter((one) => Number.isFinite(one.effect?.getComputedTiming().endTime));
      return Promise.allSettled(ending.map((one) => one.finished));
    });
    await this.page.screenshot({ path: path.join(this.out, `${name}.png`) });
  }

  /** Runs a command by its title, as with the palette. */
  async command(title) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget .quick-input-box input");
    await input.waitFor();
    await input.fill(`>${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
  }

  /**
   * Answers VS Code's own file dialog. It shows its first folder when that is read, over what was typed until then, and takes
   * no answer while it reads: so it is told again until it is gone.
   */
  async chooseFile(file) {
    const dialog = this.page.locator(".quick-input-widget");
    const input = dialog.locator(".quick-input-box input");
    await input.waitFor();
    await this.until(`the end of the dialog with ${file}`, async () => {
      try {
        const soon = { timeout: 3_000 };
        await input.fill(file, soon);
        await dialog
          .locator(".monaco-list-row", { hasText: path.basename(file) })
          .first()
          .waitFor(soon);
        await input.press("Enter", soon);
        await dialog.waitFor({ state: "hidden", ...soon });
      } catch {
        // What is seen is what counts.
      }
      return !(await dialog.isVisible());
    });
  }

  /** Opens a file of the workspace by its name. */
  async open(name) {
    await this.page.keyboard.press("Control+p");
    const dialog = this.page.locator(".quick-input-widget");
    await dialog.locator(".quick-input-box input").fill(name);
    await dialog.locator(".monaco-list-row", { hasText: name }).first().click();
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
  }

  /** A line of the editor that has this text; the editor writes no-break spaces. */
  line(text) {
    return this.editor.locator(".view-line", { hasText: text }).first();
  }

  /**
   * Points at a line, so many pixels from its start, until what is said there comes. The pointer is moved by hand: Playwright's own `hover`
   * scrolls an editor whose lines move, as they do while numbers come.
   */
  async hover(text, x, said) {
    const { mouse, keyboard } = this.page;
    await this.until(`what is said over ${text}`, async () => {
      const box = await this.line(text)
        .boundingBox({ timeout: 1_000 })
        .catch(() => null);
      if (!box) {
        await keyboard.press("Control+Home");
        return false;
      }
      await mouse.move(box.x + x, box.y + 8, { steps: 3 });
      const shown = this.page.locator(".monaco-hover", { hasText: said }).first();
      const isShown = await shown.waitFor({ timeout: 5_000 }).then(
        () => true,
        () => false,
      );
      if (!isShown) {
        await mouse.move(5, 5);
      }
      return isShown;
    });
  }

  lens(title) {
    return this.page.locator(".codelens-decoration a", { hasText: title }).first();
  }

  toast(text) {
    return this.page.locator(".notification-toast", { hasText: text }).first();
  }

  /** A button in the title of the editor that is shown. */
  titleAction(name) {
    return this.page
      .locator(`.editor-actions .action-item a[aria-label^="${name}"], .title-actions .action-item a[aria-label^="${name}"]`)
      .first();
  }

  /** Gives the view at the side so many more pixels. */
  async widenSideBar(by) {
    const bar = await this.page.locator(".part.sidebar").boundingBox();
    const [x, y] = [bar.x + bar.width + 1, bar.y + bar.height / 2];
    await this.page.mouse.move(x, y);
    await this.page.mouse.down();
    await this.page.mouse.move(x + by, y, { steps: 5 });
    await this.page.mouse.up();
  }

  /** Changes to dark colours. */
  async inTheDark() {
    await this.command("Preferences: Toggle between Light/Dark Themes");
    await this.page.locator(".monaco-workbench.vs-dark").waitFor();
  }

  async until(what, body) {
    for (const end = Date.now() + WAIT; ;) {
      if (await body()) {
        return;
      }
      if (Date.now() > end) {
        throw new Error(`${what} did not come`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
