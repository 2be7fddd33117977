import { splitText } from "../split-text.ts";

/** A range of a text with a format, as the Bot API describes it. Offsets count UTF-16 code units. */
interface Entity {
  readonly type: "bold" | "italic" | "strikethrough" | "code" | "pre" | "text_link";
  readonly offset: number;
  readonly length: number;
  readonly url?: string;
  readonly language?: string;
}

export interface FormattedText {
  readonly text: string;
  readonly entities: readonly Entity[];
}

/**
 * Maximum length of a piece. Telegram's limit is 4,096 UTF-16 code units; the rest is for the fences of a code
 * block that is cut.
 */
const pieceLength = 4_000;
const maxEntities = 100;
const fence = /^\s*```\s*([\w+#.-]{0,30})\s*$/u;

/** Cuts a Markdown text into pieces that fit into a message. A code block that is cut is closed and opened again. */
export function telegramPieces(markdown: string): readonly string[] {
  let open: string | undefined;
  return splitText(markdown, pieceLength).map((piece) => {
    const start = open === undefined ? "" : `\`\`\`${open}\n`;
    for (const line of piece.split("\n")) {
      const [, language] = fence.exec(line) ?? [];
      if (language !== undefined) open = open === undefined ? language : undefined;
    }
    return `${start}${piece}${open === undefined ? "" : "\n```"}`;
  });
}

/**
 * Converts Markdown to a text with entities. Entities are used instead of markup, so that Telegram cannot misread a
 * model's text as markup, or refuse it because of its markup. Unknown Markdown is kept as text.
 */
export function formatted(markdown: string): FormattedText {
  const writer = new Writer();
  let code: { readonly language: string; readonly lines: string[] } | undefined;
  for (const line of markdown.split("\n")) {
    const [, language] = fence.exec(line) ?? [];
    if (language !== undefined && code === undefined) code = { language, lines: [] };
    else if (language !== undefined && code !== undefined) {
      writer.pre(code.lines.join("\n"), code.language);
      code = undefined;
    } else if (code !== undefined) code.lines.push(line);
    else writer.line(line);
  }
  if (code !== undefined) writer.pre(code.lines.join("\n"), code.language);
  return writer.result();
}

/** The inline formats, in the order in which they are tried. */
const inline = [
  { form: /`([^`\n]+)`/uy, type: "code", isRaw: true },
  { form: /\*\*(?=\S)([^\n]+?)(?<=\S)\*\*/uy, type: "bold", isRaw: false },
  { form: /__(?=\S)([^\n]+?)(?<=\S)__(?!\w)/uy, type: "bold", isRaw: false },
  { form: /~~(?=\S)([^\n]+?)(?<=\S)~~/uy, type: "strikethrough", isRaw: false },
  { form: /\*(?=\S)([^*\n]+?)(?<=\S)\*/uy, type: "italic", isRaw: false },
  { form: /(?<!\w)_(?=\S)([^_\n]+?)(?<=\S)_(?!\w)/uy, type: "italic", isRaw: false },
] as const;
const link = /\[([^\]\n]{1,200})\]\((https?:\/\/[^\s()]{1,2000})\)/uy;
const heading = /^#{1,6}\s+(.+?)\s*#*$/u;
const maxDepth = 4;

class Writer {
  #text = "";
  readonly #entities: Entity[] = [];

  line(line: string): void {
    const [, title] = heading.exec(line) ?? [];
    if (title === undefined) this.#inline(line, 0);
    else this.#wrapped("bold", () => this.#inline(title, 1));
    this.#text += "\n";
  }

  pre(code: string, language: string): void {
    if (code.trim() !== "") {
      const offset = this.#text.length;
      this.#text += code;
      const named = language === "" ? {} : { language };
      this.#entities.push({ type: "pre", offset, length: code.length, ...named });
    }
    this.#text += "\n";
  }

  result(): FormattedText {
    const text = this.#text.trimEnd();
    const entities = this.#entities
      .map((each) => ({ ...each, length: Math.min(each.length, text.length - each.offset) }))
      .filter(({ length }) => length > 0)
      .toSorted((one, other) => one.offset - other.offset || other.length - one.length);
    return { text, entities: entities.slice(0, maxEntities) };
  }

  #inline(source: string, depth: number): void {
    for (let at = 0; at < source.length;) {
      const taken = depth > maxDepth ? 0 : this.#format(source, at, depth);
      if (taken === 0) this.#text += source.charAt(at);
      at += Math.max(taken, 1);
    }
  }

  /** Writes the format that begins at a position. Returns the length of its source, or 0 if none begins there. */
  #format(source: string, at: number, depth: number): number {
    if (!"`*_~[".includes(source.charAt(at))) return 0;
    link.lastIndex = at;
    const [whole, label, url] = link.exec(source) ?? [];
    if (whole !== undefined && label !== undefined && url !== undefined) {
      this.#link(label, url);
      return whole.length;
    }
    for (const { form, type, isRaw } of inline) {
      form.lastIndex = at;
      const [found, inner] = form.exec(source) ?? [];
      if (found === undefined || inner === undefined) continue;
      this.#wrapped(type, () => {
        if (isRaw) this.#text += inner;
        else this.#inline(inner, depth + 1);
      });
      return found.length;
    }
    return 0;
  }

  /** Writes a link. If the label looks like another address, which could mislead the reader, both are shown. */
  #link(label: string, url: string): void {
    const looksLikeAddress = /\w\.\w|:\/\//u.test(label);
    if (looksLikeAddress && label !== url) {
      this.#text += `${label} (${url})`;
      return;
    }
    const offset = this.#text.length;
    this.#text += label;
    this.#entities.push({ type: "text_link", offset, length: label.length, url });
  }

  #wrapped(type: Entity["type"], write: () => void): void {
    const offset = this.#text.length;
    write();
    const length = this.#text.length - offset;
    if (length > 0) this.#entities.push({ type, offset, length });
  }
}
