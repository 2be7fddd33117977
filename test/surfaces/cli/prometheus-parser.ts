/** One sample of an exposition. `labels` has the names in the order of the text. */
interface ParsedSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface ParsedFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ParsedSample[];
}

const name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const helpLine = new RegExp(`^# HELP (${name}) (.*)$`, "u");
const typeLine = new RegExp(`^# TYPE (${name}) (counter|gauge|histogram|summary|untyped)$`, "u");
const sampleLine = new RegExp(`^(${name})(?:\\{(.*)\\})? (\\S+)$`, "u");
const labelPair = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/u;
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/u;

/**
 * Reads the text format of Prometheus, version 0.0.4, and throws at everything that a strict reader may refuse. It
 * refuses a family without HELP and TYPE before its samples, a family or a label set that appears twice, an unknown
 * escape, and a counter whose name does not end in `_total` or whose value is negative.
 */
export function parseExposition(text: string): ReadonlyMap<string, ParsedFamily> {
  if (!text.endsWith("\n")) throw new Error("the last line does not end with a line feed");
  const families = new Map<string, ParsedFamily>();
  const lines = text.slice(0, -1).split("\n");
  for (let at = 0; at < lines.length;) {
    const [, family, help] = helpLine.exec(lines[at++] ?? "") ?? fail(lines, at);
    const [, typed, type] = typeLine.exec(lines[at++] ?? "") ?? fail(lines, at);
    if (family === undefined || family !== typed || families.has(family)) fail(lines, at);
    const samples: ParsedSample[] = [];
    const seen = new Set<string>();
    while (at < lines.length && !(lines[at] ?? "").startsWith("#")) {
      const [, sampled, labels = "", value = ""] = sampleLine.exec(lines[at++] ?? "") ?? fail(lines, at);
      if (sampled !== family) fail(lines, at);
      const sample = { labels: parseLabels(labels), value: parseValue(value) };
      const set = JSON.stringify(
        Object.keys(sample.labels)
          .toSorted()
          .map((key) => [key, sample.labels[key]]),
      );
      if (seen.has(set)) fail(lines, at);
      seen.add(set);
      if (type === "counter" && (!family?.endsWith("_total") || !(sample.value >= 0))) fail(lines, at);
      samples.push(sample);
    }
    families.set(family ?? "", { type: type ?? "", help: unescape(help ?? ""), samples });
  }
  return families;
}

function parseLabels(text: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== "";) {
    const [whole, label = "", value = ""] = labelPair.exec(rest) ?? fail([rest], 1);
    if (Object.hasOwn(labels, label)) fail([rest], 1);
    labels[label] = unescape(value);
    rest = rest.slice(whole?.length);
  }
  return labels;
}

function parseValue(text: string): number {
  const special = new Map([
    ["NaN", Number.NaN],
    ["+Inf", Infinity],
    ["-Inf", -Infinity],
  ]).get(text);
  if (special !== undefined) return special;
  if (!decimal.test(text)) throw new Error(`invalid value ${text}`);
  return Number(text);
}

function unescape(text: string): string {
  return text.replaceAll(/\\(.)/gu, (_whole, char: string) => (char === "n" ? "\n" : char));
}

function fail(lines: readonly string[], at: number): never {
  throw new Error(`invalid line ${at}: ${lines[at - 1]}`);
}
