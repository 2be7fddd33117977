import type { Theme } from "./theme.ts";

/**
 * A part of a block. Texts may contain no control characters except those of the theme. Markdown may contain any:
 * the screen makes them visible itself, so that for a growing text it checks only the new part.
 */
export type Part =
  /** Text that is wrapped at the width of the screen. Each line begins with `indent`. */
  | { readonly kind: "text"; readonly text: string; readonly indent?: string }
  /** One line that is cut at the width of the screen. */
  | { readonly kind: "line"; readonly text: string }
  | { readonly kind: "markdown"; readonly text: string; readonly isGrowing: boolean }
  /** An image as base64. Terminals that cannot show images show nothing, so a separate text names the image. */
  | { readonly kind: "image"; readonly data: string; readonly mediaType: string };

/** A piece of the conversation. It is drawn again only when its version has changed. */
export interface Block {
  readonly id: number;
  readonly version: string;
  /** Called only when the block is drawn. */
  readonly parts: () => readonly Part[];
}

/** Everything that is on the screen besides the composer. */
export interface Picture {
  readonly blocks: readonly Block[];
  /** Lines above the composer: the current activity, the queue and open questions. */
  readonly above: readonly Part[];
  /** Lines below the composer. */
  readonly below: readonly string[];
  /** Whether the composer is hidden, so that keys are commands. Default: `false`. */
  readonly hidesComposer?: boolean;
}

interface Completion {
  /** The text that replaces the end of the text before the cursor. */
  readonly value: string;
  readonly label: string;
  readonly description?: string;
}

/** The texts with which the text before the cursor may continue, and how much of that text they replace. */
export interface Completions {
  readonly items: readonly Completion[];
  readonly prefix: string;
}

export interface Choice<Value> {
  readonly value: Value;
  readonly label: string;
  readonly description?: string;
  /** A key that chooses it at once. */
  readonly key?: string;
}

export interface PickOptions<Value> {
  readonly title: string;
  readonly choices: readonly Choice<Value>[];
  /** Whether typing filters the choices. If not, keys that belong to choices choose them. */
  readonly filters?: boolean;
  /** The choice that is marked first. Default: the first one. */
  readonly first?: number;
  /** Signal that withdraws the question. The call then resolves to `undefined`. */
  readonly signal?: AbortSignal;
}

export interface AskOptions {
  /** The initial text, which the person may edit. Default: an empty text. */
  readonly initial?: string;
  /** Signal that withdraws the question. The call then resolves to `undefined`. */
  readonly signal?: AbortSignal;
}

export interface ScreenEvents {
  /** Called when the person has sent the text of the composer. */
  readonly onSubmit: (text: string) => void;
  /**
   * Called for a key before the composer receives it. Returns whether the key was handled; then the composer does
   * not receive it.
   */
  readonly onKey: (matches: (key: string) => boolean) => boolean;
  /**
   * Called with a pasted text. Returns the text that is inserted instead, or `undefined` to insert the pasted text
   * itself.
   */
  readonly onPaste: (text: string) => string | undefined;
  /** Called with the part of the composer's text on which the completions depend. Returns the completions. */
  readonly complete: (before: string, isAsked: boolean, signal: AbortSignal) => Promise<Completions | null>;
  /** The terminal is gone: nothing can be drawn or read any more. */
  readonly onGone: () => void;
}

/**
 * A terminal that shows a conversation above a composer. `reeve chat` and `reeve watch` draw only through this
 * interface; only its implementation depends on the drawing library.
 */
export interface Screen {
  start(): void;
  /** Gives the terminal back as it was. */
  stop(): void;
  /** Shows a picture. Only the differences to the last picture are drawn. */
  show(picture: Picture): void;
  setTheme(theme: Theme): void;
  /** Text of the composer. */
  readonly draft: string;
  setDraft(text: string): void;
  /** Inserts a text at the cursor of the composer. */
  insert(text: string): void;
  /** Adds a text to the history of the arrow keys. */
  remember(text: string): void;
  /** Whether the composer shows completions at the moment. Escape then closes them. */
  readonly isCompleting: boolean;
  /** Lets the person choose in place of the composer. Resolves to `undefined` if the person leaves. */
  pick<Value>(options: PickOptions<Value>): Promise<Value | undefined>;
  /** Asks for a text in place of the composer. Resolves to `undefined` if the person leaves. */
  ask(title: string, options?: AskOptions): Promise<string | undefined>;
  /** Puts a text into the clipboard, if the terminal allows it. */
  copy(text: string): void;
  /** Lends the terminal to another program until `run` has ended. */
  lend(run: () => Promise<void>): Promise<void>;
  /** Stops this process as the shell does with Ctrl-Z. Draws again when it continues. */
  suspend(): void;
  readonly columns: number;
  readonly rows: number;
}
