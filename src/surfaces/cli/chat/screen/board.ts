import type { AskOptions, PickOptions } from "./screen.ts";
import type { Theme } from "./theme.ts";

/** How much room texts take on a terminal. */
export interface TextMeasure {
  /** Number of columns of a text. */
  readonly width: (text: string) => number;
  /** The text, cut at a number of columns. */
  readonly cut: (text: string, columns: number) => string;
  /** The text in lines of at most a number of columns. */
  readonly wrap: (text: string, columns: number) => readonly string[];
}

/** Returns the lines of a picture, from the top. Lines beyond the rows are not shown. */
type DrawBoard = (columns: number, rows: number) => readonly string[];

export interface BoardOptions {
  readonly theme: Theme;
  /** Writes to the terminal. */
  readonly write: (text: string) => boolean;
  readonly draw: DrawBoard;
  /** A key was pressed. Returns whether it is handled. `isAsking`: a list or a question is open, which else gets the key. */
  readonly onKey: (matches: (key: string) => boolean, isAsking: boolean) => boolean;
  /** The terminal is gone: nothing can be drawn or read any more. */
  readonly onGone: () => void;
}

/** A terminal that shows one picture, which fills it, and lists and questions below. It vanishes when the program ends. */
export interface Board {
  readonly measure: TextMeasure;
  start(): void;
  /** Gives the terminal back as it was. */
  stop(): void;
  /** Draws the picture again. Only rows that have changed are written. */
  draw(): void;
  /** Lets the person choose. Resolves to `undefined` if the person leaves. */
  pick<Value>(options: PickOptions<Value>): Promise<Value | undefined>;
  /** Asks for a text. Resolves to `undefined` if the person leaves. */
  ask(title: string, options?: AskOptions): Promise<string | undefined>;
  /** Stops this process as the shell does with Ctrl-Z. Draws again when it continues. */
  suspend(): void;
}
