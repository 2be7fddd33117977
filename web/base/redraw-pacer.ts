/** Maximum duration of a redraw that may happen in every frame. Milliseconds. */
const cheapMs = 4;
/** Milliseconds until the next redraw for each millisecond that a redraw takes beyond `cheapMs`. */
const waitPerMs = 40;
const longestWaitMs = 1_000;
/** Milliseconds between two redraws of a page that is not visible, which has no frames. */
const hiddenMs = 250;

/** The functions of the browser that a pacer needs. Times are in milliseconds. */
export interface Screen {
  now(): number;
  /** Calls back before the next frame is drawn. */
  nextFrame(callback: () => void): void;
  /** Calls back when the current frame has been drawn: after its scripts, styles, layout and paint. */
  afterFrame(callback: () => void): void;
  wait(ms: number, callback: () => void): void;
}

/**
 * Redraws at most once per frame, regardless of the number of requests. The more time a redraw takes, the more
 * rarely it happens, so that no more than about 3 % of the frames are late. A run with a few agents is drawn in
 * every frame, a run with thousands about twice per second.
 */
export class RedrawPacer {
  readonly #draw: () => void;
  readonly #screen: Screen;
  #isRequested = false;
  /** What the last two redraws cost. */
  #costs: readonly [number, number] = [0, 0];
  #drawnAt = -Infinity;

  constructor(draw: () => void, screen: Screen = browserScreen) {
    this.#draw = draw;
    this.#screen = screen;
  }

  request(): void {
    if (this.#isRequested) return;
    this.#isRequested = true;
    const wait = this.#drawnAt + this.#waitMs() - this.#screen.now();
    if (wait > 0) this.#screen.wait(wait, () => this.#drawNext());
    else this.#drawNext();
  }

  /**
   * Returns the time until the next redraw. It uses the faster of the last two redraws, because other work of the
   * machine can only make a redraw slower.
   */
  #waitMs(): number {
    return Math.min(longestWaitMs, waitPerMs * Math.max(0, Math.min(...this.#costs) - cheapMs));
  }

  #drawNext(): void {
    this.#screen.nextFrame(() => {
      this.#isRequested = false;
      const startedAt = this.#screen.now();
      this.#drawnAt = startedAt;
      this.#screen.afterFrame(() => {
        this.#costs = [this.#costs[1], this.#screen.now() - startedAt];
      });
      this.#draw();
    });
  }
}

const browserScreen: Screen = {
  now: () => performance.now(),
  nextFrame: (callback) => {
    if (document.hidden) setTimeout(callback, hiddenMs);
    else requestAnimationFrame(callback);
  },
  afterFrame: (callback) => {
    // A message is a task of its own, and the task of the frame ends when the frame is drawn.
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener("message", () => {
      port1.close();
      callback();
    });
    port1.start();
    port2.postMessage(null);
  },
  wait: (ms, callback) => void setTimeout(callback, ms),
};
