import {
  Container,
  Editor,
  getCapabilities,
  Image,
  Markdown,
  matchesKey,
  TuiMainScreen,
  visibleWidth,
  wrapTextWithAnsi,
  type AutocompleteProvider,
  type Component,
  type KeyId,
  type MarkdownTheme,
} from "@earendil-works/pi-tui";
import { visibleText } from "../../../../kernel/index.ts";
import { highlight } from "./highlight.ts";
import { NodeTerminal } from "./node-terminal.ts";
import { choiceList, fitted, listTheme, textQuestion } from "./pi-choices.ts";
import type { AskOptions, Block, Part, PickOptions, Picture, Screen, ScreenEvents } from "./screen.ts";
import type { Theme } from "./theme.ts";

export interface PiScreenOptions extends ScreenEvents {
  readonly theme: Theme;
  /** Writes to the terminal. */
  readonly write: (text: string) => boolean;
}

/** Length from which a growing text is drawn in two parts. The first part is parsed only once. */
const longText = 2_000;

/** Draws with pi-tui. */
export function piScreen(options: PiScreenOptions): Screen {
  return new PiScreen(options);
}

class PiScreen implements Screen {
  readonly #events: PiScreenOptions;
  readonly #terminal: NodeTerminal;
  readonly #tui: TuiMainScreen;
  readonly #blocks: Blocks;
  readonly #above: Parts;
  readonly #below: Lines;
  readonly #slot = new Container();
  #editor: Editor;
  #theme: Theme;
  #isOn = false;
  /** Whether the composer is left out. */
  #isHidden = false;
  /** Whether a list or a question is shown in place of the composer. */
  #isPicking = false;

  constructor(options: PiScreenOptions) {
    this.#events = options;
    this.#theme = options.theme;
    this.#terminal = new NodeTerminal(options.write, options.onGone);
    this.#tui = new TuiMainScreen(this.#terminal);
    const theme = (): Theme => this.#theme;
    this.#blocks = new Blocks(theme);
    this.#above = new Parts(theme);
    this.#below = new Lines();
    this.#editor = this.#newEditor();
    this.#slot.addChild(this.#editor);
    for (const child of [this.#blocks, this.#above, this.#slot, this.#below]) this.#tui.addChild(child);
    this.#tui.setFocus(this.#editor);
    this.#tui.addInputListener((data) => {
      const pasted = this.#isPicking ? undefined : pastedText(data);
      const insertion = pasted === undefined ? undefined : options.onPaste(pasted);
      if (insertion !== undefined) {
        this.insert(insertion);
        return { consume: true };
      }
      const isHandled = options.onKey((key) => matchesKey(data, key as KeyId));
      return isHandled ? { consume: true } : undefined;
    });
  }

  get draft(): string {
    return this.#editor.getExpandedText();
  }

  get isCompleting(): boolean {
    return this.#editor.isShowingAutocomplete();
  }

  get columns(): number {
    return this.#terminal.columns;
  }

  get rows(): number {
    return this.#terminal.rows;
  }

  start(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#tui.start();
  }

  stop(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#tui.stop();
  }

  show({ blocks, above, below, hidesComposer = false }: Picture): void {
    if (hidesComposer !== this.#isHidden && !this.#isPicking) this.#hide(hidesComposer);
    this.#blocks.set(blocks);
    this.#above.set(above);
    this.#below.set(below);
    if (this.#isOn) this.#tui.requestRender();
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.#blocks.invalidate();
    const text = this.draft;
    this.#editor = this.#newEditor();
    this.#editor.setText(text);
    this.#focus(this.#editor);
  }

  setDraft(text: string): void {
    this.#editor.setText(text);
    this.#tui.requestRender();
  }

  insert(text: string): void {
    this.#editor.insertTextAtCursor(text);
    this.#tui.requestRender();
  }

  remember(text: string): void {
    this.#editor.addToHistory(text);
  }

  async pick<Value>(options: PickOptions<Value>): Promise<Value | undefined> {
    if (options.signal?.aborted === true) return undefined;
    return new Promise((resolve) => {
      const place = { theme: this.#theme, rows: this.rows };
      const list = choiceList(options, place, (value) => {
        this.#giveBack();
        resolve(value);
      });
      this.#isPicking = true;
      this.#focus(list);
    });
  }

  async ask(title: string, options: AskOptions = {}): Promise<string | undefined> {
    if (options.signal?.aborted === true) return undefined;
    return new Promise((resolve) => {
      const question = textQuestion(title, options, this.#theme, (answer) => {
        this.#giveBack();
        resolve(answer);
      });
      this.#isPicking = true;
      this.#focus(question);
    });
  }

  copy(text: string): void {
    this.#terminal.write(`\u{1b}]52;c;${Buffer.from(text).toString("base64")}\u{7}`);
  }

  async lend(run: () => Promise<void>): Promise<void> {
    this.stop();
    try {
      await run();
    } finally {
      this.start();
      this.#tui.requestRender(true);
    }
  }

  suspend(): void {
    this.stop();
    process.once("SIGCONT", () => {
      this.start();
      this.#tui.requestRender(true);
    });
    // The whole group, so that a program that started this one, such as npx, stops with it.
    process.kill(0, "SIGTSTP");
  }

  /** Shows the composer again in place of a list or a question. */
  #giveBack(): void {
    this.#isPicking = false;
    this.#hide(this.#isHidden);
  }

  #hide(isHidden: boolean): void {
    this.#isHidden = isHidden;
    this.#focus(isHidden ? new Container() : this.#editor);
  }

  #focus(component: Component): void {
    this.#slot.clear();
    this.#slot.addChild(component);
    this.#tui.setFocus(component);
    this.#tui.requestRender();
  }

  #newEditor(): Editor {
    const editor = new Editor(
      this.#tui,
      { borderColor: (text) => this.#theme.paint("dim", text), selectList: listTheme(this.#theme) },
      { paddingX: 1, autocompleteMaxVisible: 8 },
    );
    editor.onSubmit = (text) => this.#events.onSubmit(text);
    editor.setAutocompleteProvider(new Completer(this.#events));
    return editor;
  }
}

const [pasteBegin, pasteEnd] = ["\u{1b}[200~", "\u{1b}[201~"];

/** Returns the text of a paste, or `undefined` for other keys. */
function pastedText(data: string): string | undefined {
  if (!data.startsWith(pasteBegin) || !data.endsWith(pasteEnd)) return undefined;
  return data.slice(pasteBegin.length, -pasteEnd.length);
}

/** Asks the chat for completions. */
class Completer implements AutocompleteProvider {
  readonly triggerCharacters = ["@", "/"];
  readonly #events: ScreenEvents;

  constructor(events: ScreenEvents) {
    this.#events = events;
  }

  async getSuggestions(
    lines: string[],
    line: number,
    column: number,
    { signal, force = false }: { readonly signal: AbortSignal; readonly force?: boolean },
  ): Promise<{ items: { value: string; label: string; description?: string }[]; prefix: string } | null> {
    const before = [...lines.slice(0, line), (lines[line] ?? "").slice(0, column)].join("\n");
    const found = await this.#events.complete(before, force, signal);
    if (found === null || found.items.length === 0) return null;
    return { items: found.items.map((item) => ({ ...item })), prefix: found.prefix };
  }

  applyCompletion(
    lines: string[],
    line: number,
    column: number,
    { value }: { readonly value: string },
    prefix: string,
  ): { lines: string[]; cursorLine: number; cursorCol: number } {
    const text = lines[line] ?? "";
    // The person may have typed on since the list was made. Then it does not complete the present text.
    const isStale =
      text.slice(0, column) !== text.slice(0, column - prefix.length) + prefix || isCommand(prefix, column);
    if (isStale) return { lines, cursorLine: line, cursorCol: column };
    const before = text.slice(0, column - prefix.length) + value;
    const changed = [...lines];
    changed[line] = before + text.slice(column);
    return { lines: changed, cursorLine: line, cursorCol: before.length };
  }

  shouldTriggerFileCompletion(): boolean {
    return true;
  }
}

/**
 * Whether a prefix is the beginning of a command, which stands at the beginning of its line and ends before the
 * cursor.
 */
function isCommand(prefix: string, column: number): boolean {
  return prefix.startsWith("/") && prefix.length !== column;
}

/** The blocks of the conversation. Each block is drawn once for each version and width. */
class Blocks implements Component {
  readonly #theme: () => Theme;
  readonly #drawn = new Map<
    number,
    { readonly version: string; readonly width: number; readonly lines: string[] }
  >();
  readonly #growing = new Map<number, GrowingText>();
  #blocks: readonly Block[] = [];

  constructor(theme: () => Theme) {
    this.#theme = theme;
  }

  set(blocks: readonly Block[]): void {
    this.#blocks = blocks;
    if (this.#drawn.size <= blocks.length * 2 + 100) return;
    const ids = new Set(blocks.map(({ id }) => id));
    for (const id of this.#drawn.keys()) if (!ids.has(id)) this.#drawn.delete(id);
  }

  invalidate(): void {
    this.#drawn.clear();
    this.#growing.clear();
  }

  render(width: number): string[] {
    const lines: string[] = [];
    for (const block of this.#blocks) for (const line of this.#linesOf(block, width)) lines.push(line);
    return lines;
  }

  #linesOf(block: Block, width: number): readonly string[] {
    const { id, version } = block;
    const known = this.#drawn.get(id);
    if (known?.version === version && known.width === width) return known.lines;
    const lines: string[] = [];
    let isGrowing = false;
    for (const part of block.parts()) {
      if (part.kind === "markdown" && part.isGrowing) {
        isGrowing = true;
        const growing = this.#growing.get(id) ?? new GrowingText(this.#theme());
        this.#growing.set(id, growing);
        lines.push(...growing.render(part.text, width));
      } else lines.push(...partLines(part, width, this.#theme()));
    }
    if (!isGrowing) this.#growing.delete(id);
    this.#drawn.set(id, { version, width, lines });
    return lines;
  }
}

/**
 * A Markdown text that a model is still writing. All paragraphs except the last ones are parsed only once, so that
 * drawing a long answer takes no longer than a short one. When the text is complete, it is drawn again as a whole.
 */
class GrowingText {
  readonly #theme: Theme;
  #stable = "";
  #width = 0;
  #lines: string[] = [];

  constructor(theme: Theme) {
    this.#theme = theme;
  }

  render(text: string, width: number): readonly string[] {
    if (width !== this.#width || !this.#continues(text)) [this.#stable, this.#lines] = ["", []];
    this.#width = width;
    const rest = text.slice(this.#stable.length);
    const end = rest.length > longText ? stableEnd(rest) : 0;
    if (end > 0) {
      this.#lines = [...this.#lines, ...markdownLines(rest.slice(0, end), width, this.#theme), ""];
      this.#stable += rest.slice(0, end);
    }
    return [...this.#lines, ...markdownLines(text.slice(this.#stable.length), width, this.#theme)];
  }

  /**
   * Whether a text still begins with the part that was already drawn. Only the end of that part is compared,
   * because a model only appends to its text.
   */
  #continues(text: string): boolean {
    const { length } = this.#stable;
    return text.slice(Math.max(0, length - 40), length) === this.#stable.slice(-40);
  }
}

/** Returns the index of the last paragraph that is outside a block of code. 0 if no paragraph stands before it. */
function stableEnd(text: string): number {
  for (let at = text.lastIndexOf("\n\n"); at > 0; at = text.lastIndexOf("\n\n", at - 1)) {
    const before = text.slice(0, at);
    const fences = before.match(/^ {0,3}(?:```|~~~)/gmu)?.length ?? 0;
    // A line that is indented belongs to the list before it.
    if (fences % 2 === 0 && !/^\s/u.test(text.slice(at + 2, at + 3))) return at + 2;
  }
  return 0;
}

/** Lines that are cut at the width. */
class Lines implements Component {
  #lines: readonly string[] = [];

  set(lines: readonly string[]): void {
    this.#lines = lines;
  }

  invalidate(): void {
    // Nothing is kept between two renders.
  }

  render(width: number): string[] {
    return this.#lines.map((line) => fitted(line, width));
  }
}

class Parts implements Component {
  readonly #theme: () => Theme;
  #parts: readonly Part[] = [];

  constructor(theme: () => Theme) {
    this.#theme = theme;
  }

  set(parts: readonly Part[]): void {
    this.#parts = parts;
  }

  invalidate(): void {
    // Nothing is kept between two renders.
  }

  render(width: number): string[] {
    return this.#parts.flatMap((part) => partLines(part, width, this.#theme()));
  }
}

/** The lines of a part at a width. */
export function partLines(part: Part, width: number, theme: Theme): string[] {
  switch (part.kind) {
    case "line":
      return [fitted(part.text, width)];
    case "markdown":
      return markdownLines(part.text, width, theme);
    case "image": {
      if (getCapabilities().images === null) return [];
      const look = { fallbackColor: (text: string): string => text };
      const image = new Image(part.data, part.mediaType, look, { maxWidthCells: 60, maxHeightCells: 20 });
      // Only lines without a picture have a width that can be cut.
      return image
        .render(width)
        .map((line) =>
          line.includes("\u{1b}_G") || line.includes("\u{1b}]1337") ? line : fitted(line, width),
        );
    }
    case "text": {
      const { text, indent = "" } = part;
      const room = Math.max(1, width - visibleWidth(indent));
      if (text === "") return [""];
      return text
        .split("\n")
        .flatMap((line) => (line === "" ? [""] : wrapTextWithAnsi(line.replaceAll("\t", "  "), room)))
        .map((line) => fitted(indent + line, width));
    }
  }
}

function markdownLines(text: string, width: number, theme: Theme): string[] {
  if (text.trim() === "") return [];
  return new Markdown(visibleText(text), 0, 0, markdownTheme(theme))
    .render(Math.max(1, width))
    .map((line) => fitted(line, width));
}

function markdownTheme(theme: Theme): MarkdownTheme {
  const as =
    (role: Parameters<Theme["paint"]>[0]) =>
    (text: string): string =>
      theme.paint(role, text);
  return {
    heading: as("heading"),
    link: as("link"),
    linkUrl: as("dim"),
    code: as("code"),
    codeBlock: (text) => text,
    codeBlockBorder: as("dim"),
    quote: as("quote"),
    quoteBorder: as("dim"),
    hr: as("dim"),
    listBullet: as("accent"),
    bold: as("strong"),
    italic: as("italic"),
    strikethrough: as("struck"),
    underline: (text) => text,
    highlightCode: (code, language) => highlight(code, language, theme),
  };
}
