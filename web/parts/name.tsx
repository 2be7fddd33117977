import type { JSX } from "preact";
import { visibleLine } from "../../src/kernel/index.ts";

/** Number of characters of a name that a line can show. */
const longest = 400;

/** A name of a person or a program for one line: characters that hide or reorder text are written as escapes. */
export function shownName(text: string): string {
  return visibleLine(text.length > longest ? `${text.slice(0, longest)}…` : text);
}

/** A name that may be too long for its place: the head is cut, the key after the last slash stays. */
export function Name({ text: source }: { readonly text: string }): JSX.Element {
  const text = visibleLine(source);
  const at = text.lastIndexOf("/");
  return (
    <span class="name" title={text}>
      <span>{at < 0 ? text : text.slice(0, at)}</span>
      {at >= 0 && <span>{text.slice(at)}</span>}
    </span>
  );
}
