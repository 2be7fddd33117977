import {
  Fault,
  spawnKinds,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type HostedAgent,
  type JsonObject,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { checkSubAgent } from "../base/part-check.ts";
import { withoutFormat } from "../base/answer-format.ts";
import { readTools, writeTools, type DeepAgentLimits } from "./deep-agent-tools.ts";
import { adoptOutcome } from "./inner-run.ts";
import { react } from "./react.ts";
import { architectureEvent } from "../context/role-call.ts";
import { generalAgent, taskTool, type SubAgent } from "./task-tool.ts";
import { DeepAgentStateReader, type DeepAgentState } from "./deep-agent-state.ts";

/** Options of `deepAgent`. The limits default to 50 todos, 100 files and 100,000 characters per file. */
export interface DeepAgentOptions extends Partial<DeepAgentLimits> {
  /** Agents that the deep agent may spawn with its `task` tool, by the names that it uses for them. */
  readonly subAgents?: Readonly<Record<string, HostedAgent | SubAgent>>;
  /**
   * Whether the `task` tool also offers `general`: the agent itself, with its own tools and an empty conversation.
   * Default: `true`.
   */
  readonly general?: boolean;
}

const knownOptions = optionTable({
  subAgents: is.any,
  general: is.boolean({ default: true }),
  maxTodos: is.integer({ from: 1, default: 50 }),
  maxFiles: is.integer({ from: 1, default: 100 }),
  maxFileCharacters: is.integer({ from: 1, default: 100_000 }),
} satisfies OptionKinds<DeepAgentOptions>);

/**
 * A ReAct loop for long work that keeps a written plan, has virtual files for notes, and delegates tasks. The plan and
 * the files are derived from the conversation, so they survive a restart and are available in the next invocation of
 * the session.
 *
 * Roles: `general` for tasks that the agent gives to itself.
 */
export class DeepAgent implements Architecture {
  readonly name = "deep-agent";
  readonly supportsContinue = true;
  readonly supportsTurnControl = true;
  readonly base = react();
  readonly #subAgents: Readonly<Record<string, SubAgent>>;
  readonly #general: boolean;
  readonly #limits: DeepAgentLimits;

  constructor(options: DeepAgentOptions = {}) {
    const {
      subAgents = {},
      general,
      maxTodos,
      maxFiles,
      maxFileCharacters,
    } = knownOptions.read("deepAgent()", options);
    const where = "deepAgent";
    const entries = Object.entries(subAgents).map(([name, subAgent]): [string, SubAgent] => [
      name,
      toSubAgent(`sub-agent ${name} of deepAgent`, subAgent),
    ]);
    if (general && Object.hasOwn(subAgents, generalAgent))
      throw new Fault(
        "invalid_argument",
        `${where} has a sub-agent named ${generalAgent}, which is the name of the built-in sub-agent: choose another name or set general: false`,
      );
    this.#subAgents = Object.fromEntries(entries);
    this.#general = general;
    this.#limits = { maxTodos, maxFiles, maxFileCharacters };
  }

  // oxlint-disable-next-line require-yield -- `Architecture.run` must return an async iterable
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
    // The general agent may only read the files: what it wrote would not be in this conversation and would be lost
    // after a restart.
    const instructions = withoutFormat(session.instructions, deps.outputFormat);
    return [
      ...stateTools,
      taskTool({ subAgents, general, reader, deps, generalTools: readOnlyTools, instructions }),
    ];
  }
}

/**
 * Creates a deep agent: a ReAct loop with a todo list, virtual files and sub-agents. Use it for long work that does
 * not fit into one conversation; give the agent a large `maxTurns`.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { deepAgent } from "reeve/architectures";
 *
 * const researcher = new Agent({ name: "researcher", model: "anthropic/claude-sonnet-5", description: "Finds sources." });
 * const author = new Agent({
 *   name: "author",
 *   model: "anthropic/claude-sonnet-5",
 *   maxTurns: 200,
 *   architecture: deepAgent({ subAgents: { researcher } }),
 * });
 * ```
 */
export function deepAgent(options?: DeepAgentOptions): DeepAgent {
  return new DeepAgent(options);
}

const subAgentTable = optionTable({
  ...spawnKinds,
  agent: is.any,
  description: is.text(),
} satisfies OptionKinds<SubAgent>);

function toSubAgent(place: string, subAgent: HostedAgent | SubAgent): SubAgent {
  checkSubAgent(place, subAgent);
  if (!("agent" in subAgent)) return { agent: subAgent };
  return subAgentTable.read(place, subAgent);
}

function instructionsOf({ instructions }: AgentSession): string {
  const way =
    "You do long work in small steps. Before you begin, write a plan with write_todos, unless the task is a single step, and keep the plan up to date. Write what you find out to files, and read them again when you need them. Delegate tasks that can be done separately with task; delegate several in one turn if they do not depend on each other. When everything is done, give the answer.";
  return instructions === "" ? way : `${instructions}\n\n${way}`;
}

function todosOf({ todos }: DeepAgentState): readonly JsonObject[] {
  return todos.map((each) => ({ ...each }));
}

function publishState(session: AgentSession, reader: DeepAgentState): void {
  if (reader.todos.length > 0) session.metadata["todos"] = todosOf(reader);
  if (reader.files.size > 0) session.metadata["files"] = Object.fromEntries(reader.files);
}
