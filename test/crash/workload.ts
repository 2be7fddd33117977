import type {
  ContextFactory,
  HostedAgent,
  AssistantPart,
  JsonObject,
  JsonValue,
  ModelPrice,
  RunId,
  Runtime,
  Store,
} from "../../src/kernel/index.ts";
import type { RuntimeOptions } from "../../src/runtime/index.ts";
import type { CrashOptions, ServedAnswer, ServerAddress } from "../../src/testing/index.ts";

/** Work for a worker that dies, with the behaviour of the simulated models and tools. */
export interface Workload {
  readonly agents: (server: ServerAddress) => readonly HostedAgent[];
  /** Starts the work or finds it in the store, waits for its end, and returns its run ids. */
  readonly drive: (hands: Hands) => Promise<readonly RunId[]>;
  /** Expected outputs of the runs, as far as they are known in advance. */
  readonly outputs: readonly JsonValue[];
  readonly runtime?: Pick<RuntimeOptions, "suspendAfterMs">;
  /** Builds the context of a run that the worker has not started. */
  readonly context?: ContextFactory;
  readonly world: Pick<
    CrashOptions,
    "answering" | "branches" | "ignore" | "visitor" | "mayExhaust" | "sideBySide"
  >;
}

interface Hands {
  readonly runtime: Runtime;
  readonly store: Store;
  /** Agent to which the work is submitted: the first of `Workload.agents`. */
  readonly agent: HostedAgent;
  /** The other agents of the workload. */
  readonly others: readonly HostedAgent[];
  /**
   * Makes `id` the next generated id while `mint` is executed, so that a restarted worker creates the same object again.
   */
  readonly pinned: <Made>(id: string, mint: () => Promise<Made>) => Promise<Made>;
}

export const price: ModelPrice = { inputUsd: 1e-6, outputUsd: 2e-6 };
/** Maximum number of output tokens of a model call. */
export const outputLimit = 20;
/** A budget far above the spending, including calls that a crash loses, so that no warning is emitted. */
export const ampleBudget = { maxTokens: 50_000, maxCostUsd: 1 };

export interface Said {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly input: JsonObject }[];
}

/** Answer of a model to a request with this number of messages, with its bill. */
export function modelAnswer(messages: number, { text = "", calls = [] }: Said): ServedAnswer {
  const [inputTokens, outputTokens] = [messages * 10, 5];
  const content: AssistantPart[] = [
    ...(text === "" ? [] : [{ type: "text", text } as const]),
    ...calls.map(({ name, input }, index) => ({
      type: "tool_call" as const,
      callId: `call_${messages}_${index}`,
      toolName: name,
      input,
    })),
  ];
  const usage = { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const stopReason = calls.length > 0 ? "tool_calls" : "stop";
  return {
    body: { message: { role: "assistant", content: content as unknown as JsonValue }, stopReason, usage },
    bill: {
      tokens: inputTokens + outputTokens,
      usd: inputTokens * price.inputUsd + outputTokens * price.outputUsd,
    },
  };
}

export function toolAnswer(name: string, body: JsonValue): ServedAnswer {
  return { body: { did: name, with: body } };
}

/** Number of messages in the body of a model call, on which the answer depends. */
export function lengthOf(body: JsonValue): number {
  return Array.isArray(body) ? body.length : 0;
}
