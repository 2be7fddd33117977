import {
  getKeybindings,
  Input,
  SelectList,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
  type Component,
  type Focusable,
  type SelectItem,
  type SelectListTheme,
} from "@earendil-works/pi-tui";
import type { AskOptions, PickOptions } from "./screen.ts";
import type { Theme } from "./theme.ts";

/** The most rows of a list of choices. */
const mostChoices = 10;

/** A line that is cut at a width. */
export function fitted(line: string, width: number): string {
  const flat = line.replaceAll("\t", "  ");
  return visibleWidth(flat) <= width ? flat : truncateToWidth(flat, width, "…");
}

/** How a list of choices looks. */
export function listTheme(theme: Theme): SelectListTheme {
  return {
    selectedPrefix: (text) => theme.paint("accent", text),
    selectedText: (text) => theme.paint("strong", text),
    description: (text) => theme.paint("dim", text),
    scrollInfo: (text) => theme.paint("dim", text),
    noMatch: (text) => theme.paint("dim", text),
  };
}

interface ChoiceListOptions {
  readonly filters: boolean;
  readonly rows: number;
  readonly theme: Theme;
  readonly keys: ReadonlyMap<string, number>;
  readonly onChoice: (at: number | undefined) => void;
}

/**
 * Creates a list from which the person chooses. `onEnd` receives the choice, or `undefined` if the person chooses
 * nothing or the list is withdrawn.
 */
export function choiceList<Value>(
  { title, choices, filters = false, first, signal }: PickOptions<Value>,
  { theme, rows }: { readonly theme: Theme; readonly rows: number },
  onEnd: (value: Value | undefined) => void,
): Component {
  const end = endOnce(signal, onEnd);
  const items = choices.map(({ label, description, key }, at) => ({
    value: String(at),
    label: key === undefined ? label : `${key}  ${label}`,
    ...(description !== undefined && { description }),
  }));
  const list = new ChoiceList(title, items, {
    filters,
    rows: Math.max(2, Math.min(mostChoices, rows - 8)),
    theme,
    keys: new Map(choices.flatMap(({ key }, at) => (key === undefined ? [] : [[key, at] as const]))),
    onChoice: (at) => end(at === undefined ? undefined : choices[at]?.value),
  });
  if (first !== undefined) list.mark(first);
  return list;
}

/** Calls back with the first answer, or with `undefined` when the signal withdraws the question. */
function endOnce<Value>(
  signal: AbortSignal | undefined,
  onEnd: (value: Value | undefined) => void,
): (value: Value | undefined) => void {
  const end = (value: Value | undefined): void => {
    signal?.removeEventListener("abort", leave);
    onEnd(value);
  };
  const leave = (): void => end(undefined);
  signal?.addEventListener("abort", leave, { once: true });
  return end;
}

/**
 * Creates a question for a line of text. `onEnd` receives the line, or `undefined` if the person leaves the
 * question or it is withdrawn.
 */
export function textQuestion(
  title: string,
  { initial = "", signal }: AskOptions,
  theme: Theme,
  onEnd: (answer: string | undefined) => void,
): Component {
  return new Question(title, initial, theme, endOnce(signal, onEnd));
}

/** A list of choices with a title, which typing filters. */
class ChoiceList implements Component, Focusable {
  focused = false;
  readonly #title: string;
  readonly #items: readonly SelectItem[];
  readonly #options: ChoiceListOptions;
  readonly #filter = new Input({ prompt: "> " });
  #list: SelectList;

  constructor(title: string, items: readonly SelectItem[], options: ChoiceListOptions) {
    this.#title = title;
    this.#items = items;
    this.#options = options;
    this.#list = this.#listOf(items);
  }

  mark(at: number): void {
    this.#list.setSelectedIndex(at);
  }

  invalidate(): void {
    this.#list.invalidate();
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    const moves = ["tui.select.up", "tui.select.down", "tui.select.pageUp", "tui.select.pageDown"] as const;
    const isListKey = [...moves, "tui.select.confirm", "tui.select.cancel"] as const;
    if (isListKey.some((key) => keys.matches(data, key))) return this.#list.handleInput(data);
    if (!this.#options.filters) {
      const chosen = this.#options.keys.get(data.toLowerCase());
      if (chosen !== undefined) this.#options.onChoice(chosen);
      return;
    }
    this.#filter.handleInput(data);
    const wanted = this.#filter.getValue().toLowerCase().split(/\s+/u);
    this.#list = this.#listOf(
      this.#items.filter(({ label, description = "" }) => {
        const text = `${label} ${description}`.toLowerCase();
        return wanted.every((word) => text.includes(word));
      }),
    );
  }

  render(width: number): string[] {
    const { theme, filters } = this.#options;
    const rule = theme.paint("dim", "─".repeat(width));
    this.#filter.focused = this.focused;
    const title = this.#title.split("\n").flatMap((line) => wrapTextWithAnsi(line, width));
    return [
      rule,
      ...title.map((line) => fitted(line, width)),
      ...(filters ? this.#filter.render(width) : []),
      ...this.#list.render(width),
      rule,
    ];
  }

  #listOf(items: readonly SelectItem[]): SelectList {
    const { rows, theme, onChoice } = this.#options;
    const list = new SelectList([...items], rows, listTheme(theme), {
      minPrimaryColumnWidth: 20,
      maxPrimaryColumnWidth: 50,
    });
    list.onSelect = ({ value }) => onChoice(Number(value));
    list.onCancel = () => onChoice(undefined);
    return list;
  }
}

/** A question for one line of text. */
class Question implements Component, Focusable {
  focused = false;
  readonly #title: string;
  readonly #theme: Theme;
  readonly #input = new Input({ prompt: "> " });

  constructor(title: string, initial: string, theme: Theme, onAnswer: (answer: string | undefined) => void) {
    this.#title = title;
    this.#theme = theme;
    this.#input.setValue(initial);
    // The cursor stands at the end of what is edited.
    this.#input.handleInput("\u{5}");
    this.#input.onSubmit = onAnswer;
    this.#input.onEscape = () => onAnswer(undefined);
  }

  invalidate(): void {
    this.#input.invalidate();
  }

  handleInput(data: string): void {
    this.#input.handleInput(data);
  }

  render(width: number): string[] {
    this.#input.focused = this.focused;
    const rule = this.#theme.paint("dim", "─".repeat(width));
    const title = this.#title.split("\n").flatMap((line) => wrapTextWithAnsi(line, width));
    return [rule, ...title.map((line) => fitted(line, width)), ...this.#input.render(width), rule];
  }
}
