import { checkOptions, Fault, optionNames, type Guardrail } from "../../kernel/index.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

export interface RegexOptions {
  /** The name. Use different names for several guardrails. Default: `"regex"`. */
  readonly name?: string;
  /** The forbidden patterns, by the name under which a match is reported. */
  readonly patterns: Readonly<Record<string, RegExp>>;
  /** The decision per stage. Default: `block` at `input` and `output`. */
  readonly stages?: GuardedStages;
}

const knownOptions = optionNames<RegexOptions>({ name: true, patterns: true, stages: true });

/** A guardrail with your own patterns, which are matched against the unchanged text. */
export function regex(options: RegexOptions): Guardrail {
  checkOptions("regex()", options, knownOptions);
  const { name = "regex", patterns, stages = { input: "block", output: "block" } } = options;
  // The flags g and y are removed, because they keep a position between calls and would miss every other match.
  const all = Object.entries(patterns).map(([called, { source, flags }]) => ({
    called,
    pattern: new RegExp(source, flags.replaceAll(/[gy]/gu, "")),
  }));
  if (all.length === 0) {
    throw new Fault(
      "invalid_argument",
      `guardrail ${name} has no patterns; set them as in { "a ticket number": /TCK-\\d+/ }`,
    );
  }
  return textGuardrail({
    name,
    stages,
    examine: (text) => {
      const found = all.filter(({ pattern }) => pattern.test(text)).map(({ called }) => called);
      return found.length === 0 ? undefined : `it contains ${found.join(", ")}`;
    },
  });
}
