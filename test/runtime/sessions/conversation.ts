import { Agent, openRuntime, withSettings, type RuntimeOptions } from "../../../src/entries/index.ts";
import {
  messageText,
  type Runtime,
  type SessionEntry,
  type SessionId,
  type Store,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptStep } from "../../../src/testing/index.ts";

/** A runtime with one agent, whose model answers from a script. */
export interface Conversation {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly model: ScriptedModel;
  readonly scout: Agent;
  /** Invokes the agent in a session and returns its output and status. */
  readonly say: (
    input: string,
    sessionId?: string,
  ) => Promise<{ output: string; status: string; sessionId: SessionId }>;
}

export async function converse(
  store: Store,
  script: readonly ScriptStep[],
  options: RuntimeOptions = {},
): Promise<Conversation> {
  const runtime = await openRuntime({ store, unknownPrice: "ignore", retry: { maxRetries: 0 }, ...options });
  const model = scriptedModel(script);
  const scout = new Agent({ name: "scout", model: withSettings(model, { contextWindow: 10_000 }) });
  runtime.register(scout);
  const say: Conversation["say"] = async (input, sessionId) => {
    const {
      output,
      status,
      sessionId: used,
    } = await scout.invoke(input, {
      runtime,
      ...(sessionId !== undefined && { sessionId }),
    });
    return { output, status, sessionId: used };
  };
  return { store, runtime, model, scout, say };
}

/** The texts of the entries that the model sees, and the types of all others. */
export function textsOf(entries: readonly SessionEntry[]): readonly string[] {
  return entries.map((entry) =>
    entry.type === "message" || entry.type === "custom_message" ? messageText(entry.message) : entry.type,
  );
}
