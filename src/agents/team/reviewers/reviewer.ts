import {
  describeValue,
  executionBudget,
  Fault,
  type ExecutionBudget,
  invalidOption,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";

/** Options of `reviewer`. */
export interface ReviewerOptions {
  /** Name that distinguishes the reviewers of an agent: 1 to 32 letters, digits, `_` or `-`. Default: `"review"`. */
  readonly name?: string;
  /** Number of tool calls of a session after which a review starts. */
  readonly every: number;
  /** Names of the tools that the review may call, such as those of a memory. */
  readonly tools: readonly string[];
  /** Instructions that say what the review does. The model sees this text after the conversation. */
  readonly prompt: string;
  /** Budget of one review. It is not part of the agent's own budget. Default: `{ maxTurns: 8 }`. */
  readonly budget?: Partial<ExecutionBudget>;
}

/** A background review of a session. `reviewer()` creates one; the option `reviewers` of an agent takes it. */
export interface Reviewer extends Required<ReviewerOptions> {}

const knownOptions = optionTable({
  name: is.text({ default: "review" }),
  every: is.integer({ from: 1, required: true }),
  tools: is.list({ of: is.text(), required: true, hint: 'use names, as in ["remember"]' }),
  prompt: is.text({ empty: false, required: true }),
  budget: is.checkedBy(executionBudget),
} satisfies OptionKinds<ReviewerOptions>);

/**
 * Creates a reviewer for memory or skills. It counts the tool calls of each session, durably. When an invocation
 * ends and `every` calls have been made since the last review, a child of the session starts (`Agent.spawnChild`).
 * It sees the request and the answer of the invocation, and may call `tools`. A session has at most one review of a
 * reviewer at a time; a review that becomes due during another one is left out. After a review that has executed a
 * tool, the agent's cached system prompt is built again.
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
  const { name, every, tools, prompt, budget = { maxTurns: 8 } } = knownOptions.read("reviewer()", options);
  if (!/^[\w-]{1,32}$/u.test(name))
    throw invalidOption("reviewer()", "name", name, "1 to 32 letters, digits, _ or -");
  return Object.freeze({ name, every, tools: Object.freeze([...tools]), prompt, budget });
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
