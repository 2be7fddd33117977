import type { JSX } from "preact";

/** A name that may be too long for its place: the head is cut, the key after the last slash stays. */
export function Name({ text }: { readonly text: string }): JSX.Element {
  const at = text.lastIndexOf("/");
  return (
    <span class="name" title={text}>
      <span>{at < 0 ? text : text.slice(0, at)}</span>
      {at >= 0 && <span>{text.slice(at)}</span>}
    </span>
  );
}
