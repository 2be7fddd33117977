import type { JSX } from "preact";
import { visibleLine, visibleText, type ForeignCallView } from "../../src/kernel/index.ts";
import { callPlaces, optionWords } from "../model/words/foreign-words.ts";
import { Diff, diffCount } from "./diff.tsx";

/** The paths that a call of a hired program names. Those outside its folder are marked. */
export function Places({ view }: { readonly view: ForeignCallView }): JSX.Element | null {
  const places = callPlaces(view);
  if (places.length === 0) return null;
  return (
    <ul class="places" aria-label="Paths">
      {places.map(({ path, isOutside }) => (
        <li key={path} class={isOutside ? "outside" : undefined}>
          <code>{visibleLine(path)}</code>
          {isOutside && <span class="chip bad">outside its folder</span>}
        </li>
      ))}
    </ul>
  );
}

/** The changes of files that a call of a hired program makes, as the program tells them. */
export function ForeignDiffs({ view: { diffs = [] } }: { readonly view: ForeignCallView }): JSX.Element {
  return (
    <>
      {diffs.map(({ path, diff, isOutside, isCut }, at) => (
        <div key={at} class="file-diff">
          <h4 class={isOutside ? "label outside" : "label"}>
            {visibleLine(path)} <span class="num">{diffCount(diff)}</span>
          </h4>
          <Diff patch={diff} />
          {isCut === true && <p class="problem">The change is too long, and the rest of it is missing.</p>}
        </div>
      ))}
    </>
  );
}

/**
 * Shows the call that a hired program asks a person to allow: what the program says about it, and the exact
 * arguments.
 */
export function ForeignContent({
  view,
  program,
  args,
}: {
  readonly view: ForeignCallView;
  readonly program: string;
  /** The arguments, with hidden characters shown. */
  readonly args: string;
}): JSX.Element {
  const { title, kind, options } = view;
  return (
    <>
      <p class="foreign-says">
        <span class="chip">{visibleLine(program)}</span>
        <span class="label">as it reports</span>
        {title !== undefined && <b>{visibleText(title)}</b>}
        {kind !== undefined && <span class="label">({visibleLine(kind)})</span>}
      </p>
      <Places view={view} />
      <ForeignDiffs view={view} />
      <h4 class="label">Arguments</h4>
      <pre class="command">{args}</pre>
      {options !== undefined && (
        <>
          <h4 class="label">Its options</h4>
          <ul class="offered">
            {options.map(({ kind: of, name }, at) => (
              <li key={at}>
                {visibleLine(name)} <span class="label">{optionWords(of)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
