import {
  Fault,
  type CompilePattern,
  type Guardrail,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

export interface RegexOptions {
  /** Name of the guardrail. Use different names for several guardrails. Default: `"regex"`. */
  readonly name?: string;
  /** The forbidden patterns, by the name under which a match is reported. */
  readonly patterns: Readonly<Record<string, RegExp>>;
  /**
   * Whether patterns that need backtracking (lookarounds, backreferences) are accepted. They run with `RegExp`, and
   * some texts then block the process. Default: `false`.
   */
  readonly allowBacktracking?: boolean;
  /** The decision per stage. Default: `block` at `input` and `output`. */
  readonly stages?: GuardedStages;
  /** Compiles the patterns. */
  readonly compile: CompilePattern;
}

const knownOptions = optionTable({
  name: is.text({ default: "regex" }),
  patterns: is.named("patterns", 'patterns: { "a ticket number": /TCK-\\d+/u }', { required: true }),
  allowBacktracking: is.boolean({ default: false }),
  stages: is.any,
  compile: is.any,
} satisfies OptionKinds<RegexOptions>);

/**
 * Creates a guardrail with custom patterns. They are matched against the unchanged text, in time linear in its
 * length. A pattern that needs backtracking throws, unless `allowBacktracking` is set.
 */
export function regex(options: RegexOptions): Guardrail {
  const { name, patterns, allowBacktracking, compile } = knownOptions.read("regex()", options);
  const { stages = { input: "block", output: "block" } } = options;
  const all = Object.entries(patterns).map(([called, pattern]) => ({
    called,
    pattern: compile(pattern, { owner: `guardrail ${name}`, allowBacktracking }),
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
