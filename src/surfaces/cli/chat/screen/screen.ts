import type { Theme } from "./theme.ts";

/**
 * A part of a block. Texts have no control characters but those of the theme. Markdown may have any: the screen shows their
 * escapes, so that of a growing text only what is new is looked at.
 */
export type Part =
  /** Text that is wrapped at the width of the screen, each line after `indent`. */
  | { readonly kind: "text"; readonly text: string; readonly indent?: string }
  /** One line that is cut at the width of the screen. */
  | { readonly kind: "line"; readonly text: string }
  | { readonly kind: "markdown"; readonly text: string; readonly isGrowing: boolean }
  /** An image as base64. Terminals that cannot show it show nothing: a text names it. */
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
  /** Lines above the composer: activity, queue, questions. */
  readonly above: readonly Part[];
  /** Lines below the composer. */
  readonly below: readonly string[];
  /** Whether the composer is left out, so that keys are orders. Default: `false`. */
  readonly hidesComposer?: boolean;
}

interface Completion {
  /** What replaces the text before the cursor. */
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
  /** Whether typing filters the choices. Otherwise, keys of choices choose. */
  readonly filters?: boolean;
  /** The choice that is marked first. Default: the first one. */
  readonly first?: number;
  /** Withdraws the question, which then resolves to `undefined`. */
  readonly signal?: AbortSignal;
}

export interface AskOptions {
  /** The text that the person may edit. Default: an empty one. */
  readonly initial?: string;
  /** Withdraws the question, which then resolves to `undefined`. */
  readonly signal?: AbortSignal;
}

export interface ScreenEvents {
  /** The person has sent the text of the composer. */
  readonly onSubmit: (text: string) => void;
  /** A key was pressed that the composer may not have. Returns whether it is handled. */
  readonly onKey: (matches: (key: string) => boolean) => boolean;
  /** What the composer gets in place of a pasted text. `undefined`: the text itself. */
  readonly onPaste: (text: string) => string | undefined;
  /** The text of the composer, as far as it decides about completion. */
  readonly complete: (before: string, isAsked: boolean, signal: AbortSignal) => Promise<Completions | null>;
  /** The terminal is gone: nothing can be drawn or read any more. */
  readonly onGone: () => void;
}

/**
 * A terminal that shows a conversation above a composer. The only way by which `reeve chat` and `reeve watch` draw; the
 * implementation decides about the library.
 */
export interface Screen {
  start(): void;
  /** Gives the terminal back as it was. */
  stop(): void;
  /** Shows a picture. Only what differs from the last one is drawn. */
  show(picture: Picture): void;
  setTheme(theme: Theme): void;
  /** Text of the composer. */
  readonly draft: string;
  setDraft(text: string): void;
  /** Puts a text where the cursor of the composer is. */
  insert(text: string): void;
  /** Adds a text that the arrow keys bring back. */
  remember(text: string): void;
  /** Whether the composer shows completions, so that Escape closes them. */
  readonly isCompleting: boolean;
  /** Lets the person choose in place of the composer. Resolves to `undefined` if the person leaves. */
  pick<Value>(options: PickOptions<Value>): Promise<Value | undefined>;
  /** Asks for a text in place of the composer. Resolves to `undefined` if the person leaves. */
  ask(title: string, options?: AskOptions): Promise<string | undefined>;
  /** Puts a text into the clipboard, if the terminal allows it. */
  copy(text: string): void;
  /** Gives the terminal to another program until `run` has ended. */
  lend(run: () => Promise<void>): Promise<void>;
  /** Stops this process as the shell does with Ctrl-Z. Draws again when it continues. */
  suspend(): void;
  readonly columns: number;
  readonly rows: number;
}
