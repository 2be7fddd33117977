import {
  Fault,
  type HostedAgent,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
} from "../../kernel/index.ts";
import { withoutFormat } from "../answer-format.ts";
import { requireCount } from "./option-checks.ts";
import { readTools, writeTools, type DeepAgentLimits } from "./deep-agent-tools.ts";
import { adoptOutcome } from "./inner-run.ts";
import { react } from "./react.ts";
import { architectureEvent } from "./role-call.ts";
import { generalAgent, taskTool, type SubAgent } from "./task-tool.ts";
import { DeepAgentStateReader, type DeepAgentState } from "./deep-agent-state.ts";

export interface DeepAgentOptions extends Partial<DeepAgentLimits> {
  /** Whom it may hire, by the name it calls them. */
  readonly subAgents?: Readonly<Record<string, HostedAgent | SubAgent>>;
  /** Whether it may also set itself to a task, with a fresh mind. `true` unless told. */
  readonly general?: boolean;
}

/**
 * For long work: a loop of ReAct with a plan that is written down, files of its own to keep what does not fit its mind, and others to
 * hand tasks to. Plan and files are a fold over the conversation: they are there after a restart, and in its next invocation.
 * Roles: `general` for tasks it sets itself.
 */
export class DeepAgent implements Architecture {
  readonly name = "deep-agent";
  readonly base = react();
  readonly #subAgents: Readonly<Record<string, SubAgent>>;
  readonly #general: boolean;
  readonly #limits: DeepAgentLimits;

  constructor(options: DeepAgentOptions = {}) {
    const { subAgents = {}, general = true } = options;
    const where = "deepAgent";
    const entries = Object.entries(subAgents).map(([name, subAgent]): [string, SubAgent] => [
      name,
      toSubAgent(subAgent),
    ]);
    if (general && Object.hasOwn(subAgents, generalAgent))
      throw new Fault(
        "invalid_argument",
        `a sub-agent of ${where} is named ${generalAgent}, which is what it calls itself: choose another name, or say general: false`,
      );
    this.#subAgents = Object.fromEntries(entries);
    this.#general = general;
    this.#limits = {
      maxTodos: requireCount(where, "maxTodos", options.maxTodos ?? 50),
      maxFiles: requireCount(where, "maxFiles", options.maxFiles ?? 100),
      maxFileCharacters: requireCount(where, "maxFileCharacters", options.maxFileCharacters ?? 100_000),
    };
  }

  // oxlint-disable-next-line require-yield -- as the protocol has it
  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const { ctx } = deps;
    const inner = deps.freshSession("deep", instructionsOf(session));
    const reader = new DeepAgentStateReader(inner);
    const work = deps.withExtraTools(this.#tools(session, deps, reader));
    const { messages, turns, attachments, cumulativeUsage, output } = session;
    Object.assign(inner, { messages, turns, attachments, cumulativeUsage, output });
    let lastState = reader.current();
    publishState(session, lastState);
    try {
      await this.base.loop(inner, work, prompt, () => {
        session.output = inner.output;
        const state = reader.current();
        if (state.todos !== lastState.todos)
          ctx.emitEvent(architectureEvent("deep_agent", "todos_written", { todos: todosOf(state) }));
        if (state.files !== lastState.files)
          ctx.emitEvent(architectureEvent("deep_agent", "files_changed", { files: [...state.files.keys()] }));
        if (state !== lastState) publishState(session, (lastState = state));
      });
    } finally {
      adoptOutcome(session, inner);
      session.turns = inner.turns;
      session.cumulativeUsage = inner.cumulativeUsage;
      session.attachments = inner.attachments;
      publishState(session, reader.current());
    }
  }

  declaredWorkers(): Readonly<Record<string, HostedAgent>> {
    const entries = Object.entries(this.#subAgents).map(([name, { agent }]) => [name, agent]);
    return Object.fromEntries(entries) as Record<string, HostedAgent>;
  }

  #tools(
    session: AgentSession,
    deps: Dependencies,
    reader: DeepAgentStateReader,
  ): Parameters<Dependencies["withExtraTools"]>[0] {
    const readOnlyTools = readTools(reader);
    const stateTools = [...readOnlyTools, ...writeTools(reader, this.#limits)];
    const subAgents = this.#subAgents;
    const general = this.#general;
    if (!general && Object.keys(subAgents).length === 0) return stateTools;
    // The general agent looks at the files: what it wrote would be known nowhere after a restart.
    const instructions = withoutFormat(session.instructions, deps.outputFormat);
    return [
      ...stateTools,
      taskTool({ subAgents, general, reader, deps, generalTools: readOnlyTools, instructions }),
    ];
  }
}

/** A loop with a plan, files and helpers, for long work. */
export function deepAgent(options?: DeepAgentOptions): DeepAgent {
  return new DeepAgent(options);
}

function toSubAgent(subAgent: HostedAgent | SubAgent): SubAgent {
  return "agent" in subAgent ? subAgent : { agent: subAgent };
}

function instructionsOf({ instructions }: AgentSession): string {
  const way =
    "You do long work in small steps. Write a plan with write_todos before you begin, unless the task is a single step, and keep it up to date. Keep what you find out in files, and read them again when you need them. Hand tasks that can be done apart to others with task, several in one turn where none needs another. When everything is done, give the answer.";
  return instructions === "" ? way : `${instructions}\n\n${way}`;
}

function todosOf({ todos }: DeepAgentState): readonly JsonObject[] {
  return todos.map((each) => ({ ...each }));
}

function publishState(session: AgentSession, reader: DeepAgentState): void {
  if (reader.todos.length > 0) session.metadata["todos"] = todosOf(reader);
  if (reader.files.size > 0) session.metadata["files"] = Object.fromEntries(reader.files);
}
