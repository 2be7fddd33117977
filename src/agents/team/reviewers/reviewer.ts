import {
  checkOptions,
  describeValue,
  executionBudget,
  Fault,
  optionNames,
  type ExecutionBudget,
} from "../../../kernel/index.ts";

/** Options of `reviewer`. */
export interface ReviewerOptions {
  /** Distinguishes the reviewers of an agent: 1 to 32 letters, digits, `_` or `-`. Default: `"review"`. */
  readonly name?: string;
  /** Number of tool calls of a session after which a review starts. */
  readonly every: number;
  /** Names of the tools that the review may call, such as those of a memory. */
  readonly tools: readonly string[];
  /** What the review does. The model sees this text after the conversation. */
  readonly prompt: string;
  /** Budget of one review. It is not part of the agent's own budget. Default: `{ maxTurns: 8 }`. */
  readonly budget?: Partial<ExecutionBudget>;
}

/** A background review of a session. `reviewer()` creates one; the option `reviewers` of an agent takes it. */
export interface Reviewer extends Required<ReviewerOptions> {}

const knownOptions = optionNames<ReviewerOptions>({
  name: true,
  every: true,
  tools: true,
  prompt: true,
  budget: true,
});

/**
 * Creates a reviewer for memory or skills. It counts the tool calls of each session, durably. When an invocation ends and
 * `every` calls have been made since the last review, a child of the session starts (`Agent.spawnChild`): it sees what
 * the invocation was sent, and may call `tools`. A session has at most one review of a reviewer at a time; a review that
 * is due meanwhile is left out. After a review that has executed a tool, the agent's cached system prompt is built
 * again.
 *
 * @example
 * ```ts
 * import { Agent, reviewer } from "reeve";
 * import { openMemory } from "reeve/memory";
 * import { memoryTools } from "reeve/tools";
 *
 * const memory = await openMemory({ path: "./memory.db" });
 * const agent = new Agent({
 *   name: "assistant",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: [...memoryTools(memory)],
 *   reviewers: [
 *     reviewer({ every: 10, tools: ["recall", "remember"], prompt: "Remember what will help in later conversations." }),
 *   ],
 * });
 * ```
 */
export function reviewer(options: ReviewerOptions): Reviewer {
  checkOptions("reviewer()", options, knownOptions);
  const { name = "review", every, tools, prompt, budget = { maxTurns: 8 } } = options;
  if (typeof name !== "string" || !/^[\w-]{1,32}$/u.test(name))
    throw invalid("name", name, "1 to 32 letters, digits, _ or -");
  if (!Number.isSafeInteger(every) || every < 1) throw invalid("every", every, "an integer from 1");
  if (!Array.isArray(tools) || tools.some((tool) => typeof tool !== "string"))
    throw invalid("tools", tools, 'a list of tool names, as in ["remember"]');
  if (typeof prompt !== "string" || prompt.trim() === "")
    throw invalid("prompt", prompt, "a text that is not empty");
  executionBudget(budget);
  return Object.freeze({ name, every, tools: Object.freeze([...tools]), prompt, budget });
}

function invalid(option: string, value: unknown, expected: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid ${option} ${describeValue(value)} of reviewer(): expected ${expected}`,
  );
}

/** Throws `invalid_argument` for reviewers with equal names, and for one that names a tool which the agent does not have. */
export function checkReviewers(
  agent: string,
  reviewers: readonly Reviewer[],
  tools: readonly { readonly name: string }[] | undefined,
): void {
  const names = new Set<string>();
  for (const { name, tools: wanted } of reviewers) {
    if (names.has(name))
      throw new Fault(
        "invalid_argument",
        `invalid reviewers of agent ${agent}: two reviewers have the name ${name}; pass another name to reviewer()`,
      );
    names.add(name);
    const unknown = tools && wanted.find((each) => !tools.some((tool) => tool.name === each));
    if (unknown !== undefined)
      throw new Fault(
        "invalid_argument",
        `invalid tools of reviewer ${name} of agent ${agent}: there is no tool ${describeValue(unknown)}; expected some of ${tools?.map((tool) => tool.name).join(", ") || "none"}`,
      );
  }
}
