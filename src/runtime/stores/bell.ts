/** Lets one reader sleep until something new is there. A ring while it is awake is kept. */
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
