/** Lets one reader wait for a change. A ring while the reader is not waiting is remembered until `clear`. */
export class Bell {
  #rang = false;
  #wake: (() => void) | undefined;

  readonly ring = (): void => {
    this.#rang = true;
    this.#wake?.();
  };

  clear(): void {
    this.#rang = false;
  }

  rung(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#rang) resolve();
      else this.#wake = resolve;
    });
  }
}
