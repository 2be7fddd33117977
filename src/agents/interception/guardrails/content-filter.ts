import { Fault, type Guardrail, is, optionTable, type OptionKinds } from "../../../kernel/index.ts";
import { plainText } from "./guarded-text.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

/** Options of `contentFilter`. */
export interface ContentFilterOptions {
  /** Unwanted words and phrases by topic. Whole words are matched, in any letter case. */
  readonly topics: Readonly<Record<string, readonly string[]>>;
  /** The decision per stage. Default: `block` at `input` and `output`. */
  readonly stages?: GuardedStages;
}

const knownOptions = optionTable({
  topics: is.named("words", 'topics: { gambling: ["casino", "roulette"] }', { required: true }),
  stages: is.any,
} satisfies OptionKinds<ContentFilterOptions>);

/** Creates a guardrail that blocks topics by their words. */
export function contentFilter(options: ContentFilterOptions): Guardrail {
  const { topics, stages = { input: "block", output: "block" } } = knownOptions.read(
    "contentFilter()",
    options,
  );
  const filters = Object.entries(topics).map(([topic, phrases]) => ({
    topic,
    pattern: anyOf(topic, phrases),
  }));
  if (filters.length === 0) {
    throw new Fault(
      "invalid_argument",
      "invalid topics: a content filter needs at least one, such as { gambling: ['casino', 'roulette'] }",
    );
  }
  return textGuardrail({
    name: "content_filter",
    stages,
    examine: (text) => {
      const plain = plainText(text);
      const found = filters.filter(({ pattern }) => pattern.test(plain)).map(({ topic }) => topic);
      return found.length === 0
        ? undefined
        : `the text is about ${found.join(", ")}, which this agent does not handle`;
    },
  });
}

function anyOf(topic: string, phrases: readonly string[]): RegExp {
  const plain = phrases.map((phrase) => plainText(phrase).trim());
  if (plain.length === 0 || plain.includes("")) {
    throw new Fault(
      "invalid_argument",
      `invalid topic ${topic} of a content filter: expected a list of non-empty words`,
    );
  }
  const escaped = plain.map((phrase) => phrase.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`));
  return new RegExp(String.raw`(?<![\p{L}\p{N}_])(?:${escaped.join("|")})(?![\p{L}\p{N}_])`, "iu");
}
