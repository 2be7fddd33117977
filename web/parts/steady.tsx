import type { JSX } from "preact";

/** A text that is as wide as if it were strong, so that nothing beside it moves when it becomes so. */
export function Steady({ text }: { readonly text: string }): JSX.Element {
  return (
    <span class="steady" data-text={text}>
      {text}
    </span>
  );
}
