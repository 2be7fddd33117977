import { Fault, type Guardrail } from "../../kernel/index.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

export interface RegexOptions {
  /** `regex` unless told; give each its own when there are several. */
  readonly name?: string;
  /** What must not be found, by the name it is reported under. */
  readonly patterns: Readonly<Record<string, RegExp>>;
  /** Unless told, blocked in the input and withheld in the output. */
  readonly stages?: GuardedStages;
}

/** Patterns of one's own. They see the text as it is. */
export function regex({
  name = "regex",
  patterns,
  stages = { input: "block", output: "block" },
}: RegexOptions): Guardrail {
  // Flags that make a pattern remember where it was would make it miss every other time.
  const all = Object.entries(patterns).map(([called, { source, flags }]) => ({
    called,
    pattern: new RegExp(source, flags.replaceAll(/[gy]/gu, "")),
  }));
  if (all.length === 0) {
    throw new Fault(
      "invalid_argument",
      `the guardrail ${name} needs patterns: { "a ticket number": /TCK-\\d+/ }`,
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
