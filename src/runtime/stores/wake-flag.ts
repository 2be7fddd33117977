/** Lets one reader wait for a change. The flag stays raised until `clear`, also if no reader waits. */
export class WakeFlag {
  #isRaised = false;
  #wake: (() => void) | undefined;

  readonly raise = (): void => {
    this.#isRaised = true;
    this.#wake?.();
  };

  clear(): void {
    this.#isRaised = false;
  }

  raised(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isRaised) resolve();
      else this.#wake = resolve;
    });
  }
}
