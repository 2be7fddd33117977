import type { Paint } from "../terminal/paint.ts";
import { printable } from "../terminal/terminal.ts";
import type { StoryLine, Tone } from "./demo-story.ts";

/** How lines of the story are shown. */
export interface LineStyle {
  readonly paint: Paint;
  /** Columns of the terminal. Longer lines are cut. `Infinity` if the output is not a terminal. */
  readonly width: number;
}

const nameWidth = 13;

/** Formats a line of the story: the time, who, and what. */
export function storyLine({ at, who, text, tone }: StoryLine, { paint, width }: LineStyle): string {
  const time = clock(at).padStart(6);
  const name = cut(printable(who), nameWidth).padEnd(nameWidth);
  const shown = cut(printable(text), width - time.length - nameWidth - 4);
  const style = styleOf(tone, paint);
  const named = tone === "quiet" ? paint.dim(name) : paint.bold(name);
  return `${paint.dim(time)}  ${named}  ${style(shown)}`;
}

function styleOf(tone: Tone, paint: Paint): (text: string) => string {
  const styles: Readonly<Record<Tone, (text: string) => string>> = {
    plain: (text) => text,
    quiet: paint.dim,
    waits: paint.yellow,
    yields: paint.magenta,
    lost: paint.red,
    money: paint.green,
  };
  return styles[tone];
}

/** A duration as minutes and seconds, such as 0:43. */
function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, Math.max(0, width - 1)).trimEnd()}…` : text;
}

/** Breaks a text into lines of at most `width` characters. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
