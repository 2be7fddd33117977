import type { JSX } from "preact";
import { visibleText } from "../../src/kernel/index.ts";

interface DiffLine {
  readonly sign: "+" | "-" | " ";
  readonly before: number | null;
  readonly after: number | null;
  readonly text: string;
}

/** The lines of a unified diff, with their numbers before and after. A hunk `@@` without numbers has none. */
export function diffLines(patch: string): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  let [before, after, isInside]: [number | null, number | null, boolean] = [0, 0, false];
  for (const line of patch.split("\n")) {
    const hunk = /^@@(?: -(\d+)(?:,\d+)? \+(\d+)|$)/u.exec(line);
    if (hunk !== null) {
      [before, after, isInside] = [numberOf(hunk[1]), numberOf(hunk[2]), true];
      continue;
    }
    const [sign = "", text] = [line[0], line.slice(1)];
    if (!isInside || (sign !== "+" && sign !== "-" && sign !== " ")) continue;
    lines.push({ sign, before: sign === "+" ? null : before, after: sign === "-" ? null : after, text });
    if (sign !== "+" && before !== null) before++;
    if (sign !== "-" && after !== null) after++;
  }
  return lines;
}

function numberOf(text: string | undefined): number | null {
  return text === undefined ? null : Number(text);
}

/** The numbers of added and removed lines: +2 −2. */
export function diffCount(patch: string): string {
  const lines = diffLines(patch);
  const count = (wanted: DiffLine["sign"]): number => lines.filter(({ sign }) => sign === wanted).length;
  return `+${count("+")} −${count("-")}`;
}

const kinds = { "+": "added", "-": "removed", " ": "same" } as const;

export function Diff({ patch }: { readonly patch: string }): JSX.Element {
  return (
    // Scrollable, so that it must be reachable with the keyboard.
    <div class="diff" role="region" aria-label="Changed lines" tabIndex={0}>
      {diffLines(patch).map(({ sign, before, after, text }, at) => (
        <div key={at} class={kinds[sign]}>
          <span>{before}</span>
          <span>{after}</span>
          <span>{sign === "-" ? "−" : sign}</span>
          <span>{visibleText(text)}</span>
        </div>
      ))}
    </div>
  );
}
