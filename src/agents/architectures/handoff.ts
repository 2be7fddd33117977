import {
  Fault,
  type AgentSession,
  type Architecture,
  type ChatMessage,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type Tool,
  type ToolResult,
} from "../../kernel/index.ts";
import { ownTool, said } from "../base/own-tool.ts";

/** A handoff of the conversation from one peer of a swarm to another. */
export interface Handoff {
  /** Name of the peer that continues. */
  readonly target: string;
  /** Text for the target; empty if the target takes structured input. */
  readonly message: string;
  /** Structured input for the target, by the target's schema; `null` if the target takes a message. */
  readonly input: JsonValue;
  /**
   * Messages of the peer's conversation, which starts with the peer's own input. Empty unless the swarm passes on
   * the full history. Task metadata stores this field under its name.
   */
  readonly said: readonly ChatMessage[];
}

/** A peer that can be handed over to. */
export interface HandoffTarget {
  readonly name: string;
  readonly description: string;
  /**
   * Schema of the input that the target needs. The target then has its own tool, `transfer_to_<name>`. If absent, a
   * handoff contains a message.
   */
  readonly input?: JsonSchema;
}

/** Metadata key under which results and task metadata store a handoff. */
const key = "handOver";

/** Returns the handoff with which a peer's task ended. `undefined` means that the peer answered. */
export function readHandoff(metadata: JsonObject): Handoff | undefined {
  return metadata[key] as unknown as Handoff | undefined;
}

/**
 * Wraps the architecture of a peer and adds tools that hand over the conversation. A handoff ends the peer's turn
 * and task, and the swarm reads it from the metadata of the task.
 */
export class HandoffArchitecture implements Architecture {
  readonly name: string;
  readonly base: Architecture;
  readonly requiresModel: boolean;
  readonly supportsContinue: boolean;
  readonly supportsTurnControl: boolean;
  readonly #targets: readonly HandoffTarget[];
  readonly #passFullHistory: boolean;

  constructor(base: Architecture, targets: readonly HandoffTarget[], passFullHistory: boolean) {
    this.name = base.name;
    this.base = base;
    this.requiresModel = base.requiresModel ?? true;
    this.supportsContinue = base.supportsContinue ?? false;
    this.supportsTurnControl = base.supportsTurnControl ?? false;
    this.#targets = targets;
    this.#passFullHistory = passFullHistory;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const from = session.messages.length;
    const calls = new Map<string, HandoffCall>();
    const equipped = deps.withExtraTools(this.#tools(deps), ({ isError, metadata }, { callId }) => {
      if (!isError) calls.set(callId, metadata?.[key] as unknown as HandoffCall);
    });
    // A stop hook can run this architecture again in the same session; a handoff of the earlier pass must not count
    // then.
    delete session.metadata[key];
    yield* this.base.run(session, equipped, prompt);
    const handoff = finalHandoff(session.messages.slice(from), calls);
    if (handoff === undefined) return;
    const messages = this.#passFullHistory ? session.messages.slice(from) : [];
    session.metadata[key] = { ...handoff, said: messages as unknown as JsonValue };
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.base.declaredWorkers();
  }

  #tools(deps: Dependencies): readonly Tool[] {
    const withMessage = this.#targets.filter(({ input }) => input === undefined);
    const typed = this.#targets.flatMap(({ input, ...target }) =>
      input === undefined ? [] : [transferTool(deps, target, input)],
    );
    return withMessage.length === 0 ? typed : [handoffTool(withMessage), ...typed];
  }
}

type HandoffCall = Pick<Handoff, "target" | "message" | "input">;

/**
 * Returns the handoff at the end of a conversation; the first one if a turn makes several. A handoff does not count
 * if another message follows it, or if it was made in a discarded attempt. If the base architecture keeps no
 * conversation, its first handoff counts.
 */
function finalHandoff(
  messages: readonly ChatMessage[],
  calls: ReadonlyMap<string, HandoffCall>,
): HandoffCall | undefined {
  const last = messages.at(-1);
  if (last === undefined) return calls.values().next().value;
  const results = last.role === "tool" ? last.content : [];
  return results.map(({ callId }) => calls.get(callId)).find((each) => each !== undefined);
}

function handoffTool(targets: readonly HandoffTarget[]): Tool {
  const list = targets.map(({ name, description }) => `- ${name}: ${description}`);
  return ownTool({
    name: "handoff",
    description: `Hands the conversation over to another agent that is better suited to continue. Your own turn ends with it. Agents:\n${list.join("\n")}`,
    input: {
      target: { description: "Name of the agent that continues", choices: targets.map(({ name }) => name) },
      message: { description: "What the agent should do, and what it needs to know" },
    },
    concurrency: "sequential",
    execute: ({ target, message }) => handoffResult(target, message, null),
  });
}

function transferTool(
  deps: Dependencies,
  { name, description }: Pick<HandoffTarget, "name" | "description">,
  inputSchema: JsonSchema,
): Tool {
  const toolName = `transfer_to_${name}`;
  return {
    // `ownTool` describes text arguments only; the schema below replaces its description of the input.
    ...ownTool({
      name: toolName,
      description: `Hands the conversation over to ${name}. Your own turn ends with it. ${description}`,
      input: {},
      concurrency: "sequential",
      execute: () => said(""),
    }),
    inputSchema,
    parse: async (input: JsonValue) => {
      const problems = await deps.problemsOf(inputSchema, input);
      if (problems.length === 0) return input;
      throw new Fault(
        "invalid_argument",
        `the arguments of ${toolName} do not fit its schema: ${problems.join("; ")}. Fix these problems and call it again`,
      );
    },
    execute: async (input: unknown) => handoffResult(name, "", input as JsonValue),
  };
}

function handoffResult(target: string, message: string, input: JsonValue): ToolResult {
  return { ...said(`handed over to ${target}`, { [key]: { target, message, input } }), terminate: "always" };
}
