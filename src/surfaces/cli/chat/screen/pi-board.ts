import {
  CURSOR_MARKER,
  isKeyRelease,
  matchesKey,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
  type Component,
  type Focusable,
  type KeyId,
} from "@earendil-works/pi-tui";
import type { Board, BoardOptions, TextMeasure } from "./board.ts";
import { NodeTerminal } from "./node-terminal.ts";
import { choiceList, textQuestion } from "./pi-choices.ts";
import type { AskOptions, PickOptions } from "./screen.ts";

/**
 * Uses the separate (alternate) screen of the terminal without line wrapping, so that a wide character at the edge
 * moves no other row.
 */
const look = { begin: "\u{1b}[?1049h\u{1b}[?7l\u{1b}[?25l\u{1b}[2J", end: "\u{1b}[?7h\u{1b}[?1049l" };
/** Sequences before and after a drawing. The terminal shows everything between them at once. */
const [together, done] = ["\u{1b}[?2026h", "\u{1b}[?2026l"];

/** Measures the width of texts by the rules of the drawing library. */
export const piMeasure: TextMeasure = {
  width: visibleWidth,
  cut: (text, columns) => {
    if (visibleWidth(text) <= columns) return text;
    const shown = truncateToWidth(text, Math.max(0, columns), "…");
    // The library resets colours also of a text that has none.
    return text.includes("\u{1b}") ? shown : shown.replaceAll("\u{1b}[0m", "");
  },
  wrap: (text, columns) => wrapTextWithAnsi(text, Math.max(1, columns)),
};

/** Creates a board that draws whole pictures, with the list and the question of pi-tui. */
export function piBoard(options: BoardOptions): Board {
  return new PiBoard(options);
}

class PiBoard implements Board {
  readonly measure = piMeasure;
  readonly #options: BoardOptions;
  readonly #terminal: NodeTerminal;
  #dialog: (Component & Partial<Focusable>) | undefined;
  /** The rows as they are on the terminal. */
  #shown: readonly string[] = [];
  #cursor = "";
  #isOn = false;

  constructor(options: BoardOptions) {
    this.#options = options;
    this.#terminal = new NodeTerminal(options.write, options.onGone, look);
  }

  start(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#terminal.start(
      (data) => this.#input(data),
      () => this.#drawAll(),
    );
    this.#drawAll();
  }

  stop(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#terminal.stop();
  }

  draw(): void {
    if (!this.#isOn) return;
    const { columns, rows } = this.#terminal;
    const dialog = this.#dialog?.render(columns).slice(-rows) ?? [];
    const free = rows - dialog.length;
    const picture = free > 0 ? this.#options.draw(columns, free).slice(0, free) : [];
    const all = [...picture, ...Array.from({ length: free - picture.length }, () => ""), ...dialog];
    let cursor = "\u{1b}[?25l";
    const changes = all.map((line, row) => {
      const at = line.indexOf(CURSOR_MARKER);
      if (at !== -1) cursor = `\u{1b}[${row + 1};${visibleWidth(line.slice(0, at)) + 1}H\u{1b}[?25h`;
      const text = piMeasure.cut(line.replaceAll(CURSOR_MARKER, ""), columns);
      return { row, text };
    });
    const changed = changes.filter(({ row, text }) => this.#shown[row] !== text);
    this.#shown = changes.map(({ text }) => text);
    if (changed.length === 0 && cursor === this.#cursor) return;
    this.#cursor = cursor;
    const rowsWritten = changed.map(({ row, text }) => `\u{1b}[${row + 1};1H\u{1b}[0m\u{1b}[2K${text}`);
    this.#terminal.write(`${together}${rowsWritten.join("")}\u{1b}[0m${cursor}${done}`);
  }

  async pick<Value>(options: PickOptions<Value>): Promise<Value | undefined> {
    if (options.signal?.aborted === true) return undefined;
    return new Promise((resolve) => {
      const place = { theme: this.#options.theme, rows: this.#terminal.rows };
      this.#open(
        choiceList(options, place, (value) => {
          this.#open(undefined);
          resolve(value);
        }),
      );
    });
  }

  async ask(title: string, options: AskOptions = {}): Promise<string | undefined> {
    if (options.signal?.aborted === true) return undefined;
    return new Promise((resolve) => {
      this.#open(
        textQuestion(title, options, this.#options.theme, (answer) => {
          this.#open(undefined);
          resolve(answer);
        }),
      );
    });
  }

  suspend(): void {
    this.stop();
    process.once("SIGCONT", () => this.start());
    // The whole group, so that a program that started this one, such as npx, stops with it.
    process.kill(0, "SIGTSTP");
  }

  #open(dialog: (Component & Partial<Focusable>) | undefined): void {
    this.#dialog = dialog;
    if (dialog !== undefined) dialog.focused = true;
    this.draw();
  }

  #input(data: string): void {
    if (isKeyRelease(data)) return;
    const dialog = this.#dialog;
    const isHandled = this.#options.onKey((key) => matchesKey(data, key as KeyId), dialog !== undefined);
    if (isHandled) return;
    dialog?.handleInput?.(data);
    this.draw();
  }

  #drawAll(): void {
    this.#shown = [];
    this.#terminal.write("\u{1b}[2J");
    this.draw();
  }
}
