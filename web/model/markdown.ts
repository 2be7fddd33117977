/** A piece of a line. */
export type Inline =
  | { readonly kind: "text" | "code" | "strong" | "emphasis"; readonly text: string }
  | { readonly kind: "link"; readonly text: string; readonly href: string };

/** An entry of a list. `level` is 0 for the outermost list. */
export interface ListItem {
  readonly level: number;
  /** The number of an entry of a numbered list. `null` for a bullet. */
  readonly number: number | null;
  readonly text: string;
}

/** A part of a text that a model wrote. */
export type Block =
  | { readonly kind: "code" | "text" | "heading"; readonly text: string }
  | { readonly kind: "quote"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly ListItem[] }
  | {
      readonly kind: "table";
      readonly head: readonly string[];
      /** The columns whose values are at the right, such as numbers. */
      readonly right: ReadonlySet<number>;
      readonly rows: readonly (readonly string[])[];
    };

const fence = /^\s{0,3}```/u;
const heading = /^#{1,6} (.*)$/u;
const quote = /^\s{0,3}> ?/u;
const entry = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/u;
const rule = /^\s*\|?(?:\s*:?-{1,100}:?\s*\|){1,50}\s*(?::?-{1,100}:?\s*)?$/u;

/** Number of columns of a table that are read. */
const mostColumns = 50;

/**
 * Parses a text into blocks. Unknown syntax is kept as it was written. A block that is still incomplete, because
 * the text is being written, is parsed as far as possible. Takes O(length).
 */
export function blocksOf(text: string): readonly Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length;) {
    const [block, next] = blockAt(lines, at);
    if (block !== null) blocks.push(block);
    at = next;
  }
  return blocks;
}

function blockAt(lines: readonly string[], at: number): readonly [Block | null, number] {
  const line = lines[at] ?? "";
  if (line.trim() === "") return [null, at + 1];
  if (fence.test(line)) {
    let end = at + 1;
    while (end < lines.length && !fence.test(lines[end] ?? "")) end++;
    return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, end + 1];
  }
  const title = heading.exec(line)?.[1];
  if (title !== undefined) return [{ kind: "heading", text: title }, at + 1];
  if (quote.test(line)) {
    const end = endOf(lines, at, (each) => quote.test(each));
    const words = lines.slice(at, end).map((each) => each.replace(quote, ""));
    return [{ kind: "quote", text: words.join("\n") }, end];
  }
  if (entry.test(line)) return listAt(lines, at);
  if (isTable(lines, at)) {
    const end = endOf(lines, at + 2, (each) => each.includes("|"));
    const marks = cellsOf(lines[at + 1] ?? "");
    const right = new Set(marks.flatMap((mark, column) => (/^-+:$/u.test(mark) ? [column] : [])));
    return [{ kind: "table", head: cellsOf(line), right, rows: lines.slice(at + 2, end).map(cellsOf) }, end];
  }
  const end = endOf(lines, at + 1, (each, index) => each.trim() !== "" && !startsBlock(lines, index));
  return [{ kind: "text", text: lines.slice(at, end).join("\n") }, end];
}

/** The first line from `at` on that does not fit. */
function endOf(lines: readonly string[], at: number, fits: (line: string, index: number) => boolean): number {
  let end = at;
  while (end < lines.length && fits(lines[end] ?? "", end)) end++;
  return end;
}

/** Whether a line ends the paragraph before it. */
function startsBlock(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? "";
  return fence.test(line) || heading.test(line) || quote.test(line) || entry.test(line) || isTable(lines, at);
}

/** A table has a line of names, and below it one of dashes. */
function isTable(lines: readonly string[], at: number): boolean {
  const [names = "", dashes = ""] = [lines[at], lines[at + 1]];
  return names.includes("|") && dashes.length < 5_000 && rule.test(dashes);
}

function cellsOf(line: string): readonly string[] {
  const inner = line.trim().replace(/^\|/u, "").replace(/\|$/u, "");
  return inner.split("|", mostColumns).map((cell) => cell.trim());
}

/** The entries of a list. A line that is indented continues its entry. */
function listAt(lines: readonly string[], first: number): readonly [Block, number] {
  const items: ListItem[] = [];
  let at = first;
  for (; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const [, indent = "", number, text = ""] = entry.exec(line) ?? [];
    const last = items.at(-1);
    if (entry.test(line)) {
      const level = Math.min(5, Math.floor(indent.replaceAll("\t", "  ").length / 2));
      items.push({ level, number: number === undefined ? null : Number(number), text });
    } else if (last !== undefined && /^\s{2,}\S/u.test(line))
      items[items.length - 1] = { ...last, text: `${last.text}\n${line.trim()}` };
    else break;
  }
  return [{ kind: "list", items }, at];
}

/** Each piece has a length, so that a line of a megabyte costs no more than its length. */
const piece =
  /(`[^`\n]{1,2000}`|\*\*[^*\n]{1,2000}\*\*|\*[^*\s](?:[^*\n]{0,500}[^*\s])?\*|(?<!\w)_[^_\s](?:[^_\n]{0,500}[^_\s])?_(?!\w)|\[[^[\]\n]{1,500}\]\([^()\s]{1,2000}\)|\bhttps?:\/\/[^\s<>()[\]"'`|]{1,2000})/u;
const named = /^\[(?<text>[^\]]+)\]\((?<href>[^)]+)\)$/u;

/** The pieces of a line: code, emphasis, links and the text between them. */
export function inlineOf(text: string): readonly Inline[] {
  return text
    .split(piece)
    .filter((part) => part !== "")
    .map(inlinePiece);
}

function inlinePiece(text: string): Inline {
  const isWrapped = (mark: string): boolean =>
    text.length > 2 * mark.length && text.startsWith(mark) && text.endsWith(mark);
  if (isWrapped("`")) return { kind: "code", text: text.slice(1, -1) };
  if (isWrapped("**")) return { kind: "strong", text: text.slice(2, -2) };
  if (piece.exec(text)?.[0] !== text) return { kind: "text", text };
  if (isWrapped("*") || isWrapped("_")) return { kind: "emphasis", text: text.slice(1, -1) };
  const { text: words = text, href = text } = named.exec(text)?.groups ?? {};
  return isAddress(href) ? { kind: "link", text: words, href } : { kind: "text", text };
}

/** Whether a link may be opened: a web or e-mail address, never a script. */
function isAddress(href: string): boolean {
  if (!URL.canParse(href)) return false;
  const { protocol } = new URL(href);
  return protocol === "https:" || protocol === "http:" || protocol === "mailto:";
}
