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
import { ownTool, said } from "../own-tool.ts";

/** Whom a peer hands over to, and with what. */
export interface Handoff {
  readonly target: string;
  /** What the target is told, if it is told in words. */
  readonly message: string;
  /** What it is told in the form it asks for. */
  readonly input: JsonValue;
  /** What the peer had said by then, where that is to be passed on. */
  readonly said: readonly ChatMessage[];
}

/** Someone who can be handed over to. */
export interface HandoffTarget {
  readonly name: string;
  readonly description: string;
  /** What it is to be told, by this schema, through a tool of its own; words, unless told. */
  readonly input?: JsonSchema;
}

const key = "handOver";

/** The hand-over that a peer's task ended on; `undefined`: it answered. */
export function readHandoff(metadata: JsonObject): Handoff | undefined {
  return metadata[key] as unknown as Handoff | undefined;
}

/**
 * How a peer thinks, with tools to hand over to others. A hand-over ends its turn, and its task; it comes back to whoever hired it as
 * metadata.
 */
export class HandoffArchitecture implements Architecture {
  readonly name: string;
  readonly base: Architecture;
  readonly requiresModel: boolean;
  readonly #targets: readonly HandoffTarget[];
  readonly #passFullHistory: boolean;

  constructor(base: Architecture, targets: readonly HandoffTarget[], passesOn: boolean) {
    this.name = base.name;
    this.base = base;
    this.requiresModel = base.requiresModel ?? true;
    this.#targets = targets;
    this.#passFullHistory = passesOn;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const from = session.messages.length;
    const calls = new Map<string, HandoffCall>();
    const equipped = deps.withExtraTools(this.#tools(deps), ({ isError, metadata }, { callId }) => {
      if (!isError) calls.set(callId, metadata?.[key] as unknown as HandoffCall);
    });
    // Whoever sends it on, in the same session, wants to hear it.
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
    const inWords = this.#targets.filter(({ input }) => input === undefined);
    const typed = this.#targets.flatMap(({ input, ...target }) =>
      input === undefined ? [] : [transferTool(deps, target, input)],
    );
    return inWords.length === 0 ? typed : [handoffTool(inWords), ...typed];
  }
}

type HandoffCall = Pick<Handoff, "target" | "message" | "input">;

/**
 * The hand-over that a conversation ends on; of several in one turn the first counts. One that something was said after, or that was made in
 * an attempt that is not the answer, is none. A base that keeps no conversation is taken at its first.
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
    description: `Hands the conversation over to someone who is better placed to go on with it; you are done then. There are:\n${list.join("\n")}`,
    input: {
      target: { description: "Who is to go on", choices: targets.map(({ name }) => name) },
      message: { description: "What they are to do, and what they need to know for it" },
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
    // Texts only is what it looks like; what its arguments are is for the schema to say.
    ...ownTool({
      name: toolName,
      description: `Hands the conversation over to ${name}; you are done then. ${description}`,
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
        `the arguments of ${toolName} do not fit its schema: ${problems.join("; ")}. Call it again with these mended`,
      );
    },
    execute: async (input: unknown) => handoffResult(name, "", input as JsonValue),
  };
}

function handoffResult(target: string, message: string, input: JsonValue): ToolResult {
  return { ...said(`handed over to ${target}`, { [key]: { target, message, input } }), terminate: "always" };
}
