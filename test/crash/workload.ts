import type {
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

/** Work for a worker that dies, and what the world around it does. */
export interface Workload {
  readonly agents: (server: ServerAddress) => readonly HostedAgent[];
  /** Starts the work or finds it done, waits for its end, and says which runs it was. */
  readonly drive: (hands: Hands) => Promise<readonly RunId[]>;
  /** What comes out of each run, as far as it can be said beforehand. */
  readonly outputs: readonly JsonValue[];
  readonly runtime?: Pick<RuntimeOptions, "suspendAfterMs">;
  readonly world: Pick<CrashOptions, "answering" | "branches" | "visitor" | "mayExhaust" | "sideBySide">;
}

interface Hands {
  readonly runtime: Runtime;
  readonly store: Store;
  /** Whom the work is submitted to: the first of `Workload.agents`. */
  readonly agent: HostedAgent;
  /** While `mint` begins, the next id is this one: what it makes is made once, in whichever life. */
  readonly pinned: <Made>(id: string, mint: () => Promise<Made>) => Promise<Made>;
}

export const price: ModelPrice = { inputUsd: 1e-6, outputUsd: 2e-6 };
/** What a model's call may answer. */
export const outputLimit = 20;
/** Far above what is spent, with what crashes lose, so that no warning comes. */
export const ampleBudget = { maxTokens: 50_000, maxCostUsd: 1 };

export interface Said {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly input: JsonObject }[];
}

/** The answer of a model to so many messages, with its bill. */
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

/** A model's call carries its messages; its answer depends on how many there are. */
export function lengthOf(body: JsonValue): number {
  return Array.isArray(body) ? body.length : 0;
}
