import { Fault, type Guardrail } from "../../kernel/index.ts";
import { plainText } from "./guarded-text.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

export interface ContentFilterOptions {
  /** Unwanted words and phrases, by the name of what they are about. Whole words, in any case. */
  readonly topics: Readonly<Record<string, readonly string[]>>;
  /** Unless told, blocked in the input and withheld in the output. */
  readonly stages?: GuardedStages;
}

/** Keeps topics out by their words. */
export function contentFilter({
  topics,
  stages = { input: "block", output: "block" },
}: ContentFilterOptions): Guardrail {
  const filters = Object.entries(topics).map(([topic, phrases]) => ({
    topic,
    pattern: anyOf(topic, phrases),
  }));
  if (filters.length === 0) {
    throw new Fault(
      "invalid_argument",
      "a content filter needs topics: { gambling: ['casino', 'roulette'] }",
    );
  }
  return textGuardrail({
    name: "content_filter",
    stages,
    examine: (text) => {
      const plain = plainText(text);
      const found = filters.filter(({ pattern }) => pattern.test(plain)).map(({ topic }) => topic);
      return found.length === 0 ? undefined : `it is about ${found.join(", ")}, which is not for this agent`;
    },
  });
}

function anyOf(topic: string, phrases: readonly string[]): RegExp {
  const plain = phrases.map((phrase) => plainText(phrase).trim());
  if (plain.length === 0 || plain.includes("")) {
    throw new Fault("invalid_argument", `topic ${topic} of a content filter needs words, none of them empty`);
  }
  const escaped = plain.map((phrase) => phrase.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`));
  return new RegExp(String.raw`(?<![\p{L}\p{N}_])(?:${escaped.join("|")})(?![\p{L}\p{N}_])`, "iu");
}
