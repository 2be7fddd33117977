import type { JSX } from "preact";

/** A text that has the same width in normal and bold type, so that nothing beside it moves when it changes. */
export function Steady({ text }: { readonly text: string }): JSX.Element {
  return (
    <span class="steady" data-text={text}>
      {text}
    </span>
  );
}
