import type { AskOptions, PickOptions } from "./screen.ts";
import type { Theme } from "./theme.ts";

/** How much room texts take on a terminal. */
export interface TextMeasure {
  /** Number of columns of a text. */
  readonly width: (text: string) => number;
  /** The text, cut at a number of columns. */
  readonly cut: (text: string, columns: number) => string;
  /** Breaks a text into lines of at most `columns` columns. */
  readonly wrap: (text: string, columns: number) => readonly string[];
}

/** Returns the lines of a picture, from the top. Lines beyond the rows are not shown. */
type DrawBoard = (columns: number, rows: number) => readonly string[];

export interface BoardOptions {
  readonly theme: Theme;
  /** Writes to the terminal. */
  readonly write: (text: string) => boolean;
  readonly draw: DrawBoard;
  /**
   * Called when a key is pressed. Returns whether the key was handled. If `isAsking` is `true`, a list or a
   * question is open, which receives the key if it was not handled.
   */
  readonly onKey: (matches: (key: string) => boolean, isAsking: boolean) => boolean;
  /** Called when the terminal is gone: nothing can be drawn or read any more. */
  readonly onGone: () => void;
}

/**
 * A terminal that is filled by one picture, with lists and questions below it. The picture disappears when the
 * program ends.
 */
export interface Board {
  readonly measure: TextMeasure;
  start(): void;
  /** Gives the terminal back as it was. */
  stop(): void;
  /** Draws the picture again. Only changed rows are written. */
  draw(): void;
  /** Lets the person choose. Resolves to `undefined` if the person leaves. */
  pick<Value>(options: PickOptions<Value>): Promise<Value | undefined>;
  /** Asks for a text. Resolves to `undefined` if the person leaves. */
  ask(title: string, options?: AskOptions): Promise<string | undefined>;
  /** Suspends this process like Ctrl-Z in a shell. Draws again when the process continues. */
  suspend(): void;
}
