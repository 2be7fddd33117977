import { Fault, type JsonObject } from "../../../kernel/index.ts";
import { parseYamlObject } from "./yaml-text.ts";

/** A Markdown text with the data that precedes it. */
export interface MarkdownFile {
  /** Data between the lines `---`. Empty if the text has no front matter. */
  readonly data: JsonObject;
  /** Text after the front matter, without surrounding blank lines. */
  readonly body: string;
}

/**
 * Splits a Markdown text into its YAML front matter and its body. The text has `\n` as line end. Throws
 * `invalid_argument` with the path of the file if the front matter has no end or is not a mapping.
 */
export function parseMarkdown(text: string, path: string): MarkdownFile {
  if (!/^---[ \t]*\n/u.test(text)) return { data: {}, body: text.trim() };
  const start = text.indexOf("\n") + 1;
  const end = /^---[ \t]*$/mu.exec(text.slice(start));
  if (end === null)
    throw new Fault(
      "invalid_argument",
      `invalid front matter of ${path}: the closing line --- is missing; add it before the text`,
    );
  const yaml = text.slice(start, start + end.index);
  const body = text.slice(start + end.index + end[0].length);
  return { data: parseYamlObject(yaml, `the front matter of ${path}`), body: body.trim() };
}
