// Starts and stops one after the other: of those asked for while one is under way, only the last is done.

export class Restarts {
  private running: Promise<void> | undefined;
  private again: Promise<void> | undefined;

  constructor(private readonly work: () => Promise<void>) {}

  /** Asks for a restart; done when one has ended that began after this call. */
  request(): Promise<void> {
    if (!this.running) {
      return this.run();
    }
    this.again ??= this.running
      .catch(() => {})
      .then(() => {
        this.again = undefined;
        return this.run();
      });
    return this.again;
  }

  /** Done when none is under way, and none is asked for. */
  async settled(): Promise<void> {
    for (let next = this.again ?? this.running; next; next = this.again ?? this.running) {
      await next.catch(() => {});
    }
  }

  private run(): Promise<void> {
    const running = this.work().finally(() => {
      if (this.running === running) {
        this.running = undefined;
      }
    });
    this.running = running;
    return running;
  }
}
