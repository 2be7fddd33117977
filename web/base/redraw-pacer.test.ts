import { describe, expect, test } from "vitest";
import { RedrawPacer, type Screen } from "./redraw-pacer.ts";

const frameMs = 16;

/** A screen with a clock that the test moves, and one frame every 16 ms. */
class FakeScreen implements Screen {
  #now = 0;
  #frame: (() => void)[] = [];
  #after: (() => void)[] = [];
  #waits: { readonly at: number; readonly callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  nextFrame(callback: () => void): void {
    this.#frame.push(callback);
  }

  afterFrame(callback: () => void): void {
    this.#after.push(callback);
  }

  wait(ms: number, callback: () => void): void {
    this.#waits.push({ at: this.#now + ms, callback });
  }

  /** Work of the page that takes time. */
  spend(ms: number): void {
    this.#now += ms;
  }

  passFrame(): void {
    const startedAt = this.#now;
    for (const { callback } of this.#waits.filter(({ at }) => at <= startedAt)) callback();
    this.#waits = this.#waits.filter(({ at }) => at > startedAt);
    for (const callback of this.#frame.splice(0)) callback();
    for (const callback of this.#after.splice(0)) callback();
    this.#now = Math.max(this.#now, startedAt + frameMs);
  }
}

/** Requests a redraw several times per frame for a time. Returns how many redraws happened. */
function redraws(costMs: number, seconds: number, costOfFirst = costMs): number {
  const screen = new FakeScreen();
  let drawn = 0;
  const pacer = new RedrawPacer(() => {
    screen.spend(drawn === 0 ? costOfFirst : costMs);
    drawn++;
  }, screen);
  while (screen.now() < seconds * 1_000) {
    for (let request = 0; request < 10; request++) pacer.request();
    screen.passFrame();
  }
  return drawn;
}

describe("RedrawPacer", () => {
  test("RedrawPacer draws in every frame, and once per frame, while redraws are fast", () => {
    const drawn = redraws(2, 10);
    expect(drawn).toBe(10_000 / frameMs);
  });

  test.each([17, 20, 30, 50, 100])(
    "RedrawPacer makes at most 4 %% of the frames late if a redraw takes %i ms",
    (cost) => {
      const seconds = 60;
      const drawn = redraws(cost, seconds);
      const frames = (seconds * 1_000 - drawn * (cost - frameMs)) / frameMs;
      expect(drawn / frames).toBeLessThan(0.04);
      expect(drawn).toBeGreaterThan(seconds * 0.8);
    },
  );

  test("RedrawPacer draws fast redraws in every frame after a slow first one", () => {
    expect(redraws(2, 10, 500)).toBeGreaterThan(550);
  });

  test("RedrawPacer draws what was requested last, also if no further request follows", () => {
    const screen = new FakeScreen();
    let [state, shown] = [0, 0];
    const pacer = new RedrawPacer(() => {
      screen.spend(30);
      shown = state;
    }, screen);
    for (state = 1; state <= 5; state++) {
      pacer.request();
      screen.passFrame();
    }
    state = 9;
    pacer.request();
    for (let frame = 0; frame < 100; frame++) screen.passFrame();
    expect(shown).toBe(9);
  });
});
