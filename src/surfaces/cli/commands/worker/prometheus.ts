/** The label names and values of one sample. */
type Labels = Readonly<Record<string, string>>;

/** A metric family in the text format of Prometheus, version 0.0.4. */
export interface Family {
  /** Name of the family. The name of a counter ends in `_total`. */
  readonly name: string;
  readonly type: "counter" | "gauge";
  /** What the values mean, in one sentence. */
  readonly help: string;
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

/** The media type of `exposition`. */
export const expositionType = "text/plain; version=0.0.4; charset=utf-8";

/** Formats metric families as text in the format of Prometheus. */
export function exposition(families: readonly Family[]): string {
  return families.map(familyText).join("");
}

function familyText({ name, type, help, samples }: Family): string {
  const lines = samples.map(({ labels = {}, value }) => `${name}${labelText(labels)} ${numberText(value)}`);
  return [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`, ...lines, ""].join("\n");
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

/** Escapes a label value. Line breaks are also escaped, because a sample must be one line. */
function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', String.raw`\"`);
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", String.raw`\\`).replaceAll("\n", String.raw`\n`);
}

function numberText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
