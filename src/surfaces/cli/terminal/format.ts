import { jsonText, type JsonValue, type RunSummary, type ToolResult } from "../../../kernel/index.ts";
import { printable } from "./terminal.ts";

/** Maximum length of a value that is printed in one line. */
const longest = 100;

/** Formats dollars with four decimals, or with two significant digits for smaller amounts. */
export function dollars(costUsd: number | null): string {
  if (costUsd === null) return "price unknown";
  const places = costUsd > 0 && costUsd < 0.01 ? 2 - Math.floor(Math.log10(costUsd)) : 4;
  return `$${costUsd.toFixed(Math.max(4, Math.min(places, 9)))}`;
}

export function counted(count: number): string {
  return count.toLocaleString("en");
}

/**
 * Describes what a run waits for, with the name of the machine to which the run is bound (L21). Empty if the run
 * does not wait.
 */
export function causeWords({ waitsFor, host }: Pick<RunSummary, "waitsFor" | "host">): string {
  const words = waitsFor.map((cause) =>
    cause === "host" && host !== undefined ? `host ${printable(host)}` : cause,
  );
  return words.join(", ");
}

/** Cuts a value to one short line. */
export function short(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

/** Returns the shortened first line of a value, with the number of lines that follow it. */
export function shortText(value: JsonValue): string {
  const lines = jsonText(value)
    .split("\n")
    .filter((line) => line.trim() !== "");
  const [first = ""] = lines;
  const more = lines.length > 1 ? ` (+${lines.length - 1} ${lines.length === 2 ? "line" : "lines"})` : "";
  return `${printable(short(first.trim()))}${more}`;
}

/** The result of a tool in short. */
export function shortResult({ output }: ToolResult): string {
  if (output.type === "text") return output.text.trim() === "" ? "(empty)" : shortText(output.text);
  if (output.type === "json") return printable(short(output.value));
  return output.parts
    .map((part) =>
      part.type === "text" ? shortText(part.text) : `(${part.type} ${printable(part.mediaType)})`,
    )
    .join(" ");
}

/** Formats a duration in its two largest units, such as `3 m 20 s`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const units: readonly (readonly [string, number])[] = [
    ["d", Math.floor(seconds / 86_400)],
    ["h", Math.floor(seconds / 3600) % 24],
    ["m", Math.floor(seconds / 60) % 60],
    ["s", seconds % 60],
  ];
  const first = units.findIndex(([, count]) => count > 0);
  if (first === -1) return "0 s";
  return units
    .slice(first, first + 2)
    .filter(([, count]) => count > 0)
    .map(([unit, count]) => `${count} ${unit}`)
    .join(" ");
}

/** Pads the cells of each row to the width of their columns. The last column is not padded. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]?.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0))).join("  "),
  );
}

/** The charged cost, and the part of it for calls without reported usage. */
interface Charged {
  readonly costUsd: number | null;
  readonly unreported: { readonly costUsd: number | null; readonly likelyUsd?: number | null };
}

/** Returns the charged cost together with the likely cost of calls without reported usage (rule B3). */
export function likelyCost({ costUsd, unreported }: Charged): string {
  const { costUsd: lost, likelyUsd = lost } = unreported;
  if (costUsd === null || lost === null) return dollars(null);
  return likelyUsd === null ? "not known" : dollars(costUsd - lost + likelyUsd);
}

/** Describes the likely cost, as text after the charged cost. Empty if every call reported its usage. */
export function likelyWords(charged: Charged): string {
  return charged.unreported.likelyUsd === undefined ? "" : ` (likely ${likelyCost(charged)})`;
}

/** A text as one word of a shell command. */
export function shellWord(text: string): string {
  return /^[\w./:@=+-]+$/u.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Formats a number of bytes, such as `3.2 MB`. */
export function byteWords(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1_000 && unit < units.length - 1) [value, unit] = [value / 1_000, unit + 1];
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
