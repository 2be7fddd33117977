import {
  CancellationError,
  reviveFault,
  type BeforeCall,
  type CallPath,
  type CallVerdict,
  type ChatContext,
  type ChatMiddleware,
  type GatedCall,
  type HostedAgent,
  type JsonValue,
  type RunContext,
  type TaskInbox,
} from "../../kernel/index.ts";
import type { ReplayedCalls } from "./replayed-calls.ts";

/**
 * Finds the record from which the calls of a task are answered. `undefined` for a task whose calls are executed
 * live.
 */
export type FindCalls = (ctx: RunContext) => Promise<ReplayedCalls | undefined>;

/**
 * Agents whose calls are answered from records. A replayed agent has the code, the id and the policy of its agent,
 * and two additional layers around its calls: the outermost middleware around model calls, which compares the
 * request as the agent made it, and the first check before tool calls, so that no rule is applied and no person is
 * asked again.
 */
export class ReplayedAgents {
  readonly #find: FindCalls;
  readonly #agents = new WeakMap<HostedAgent, HostedAgent>();
  /** The records of the tasks that this process executes. */
  readonly #tasks = new Map<string, ReplayedCalls>();

  constructor(find: FindCalls) {
    this.#find = find;
  }

  /** The agent with its sub-agents, which it spawns by id. Each call for one agent returns the same one. */
  of(agent: HostedAgent): HostedAgent {
    const known = this.#agents.get(agent);
    if (known !== undefined) return known;
    const path = new ReplayedPath(agent, (runId, taskId) => this.#tasks.get(`${runId} ${taskId}`));
    const run: HostedAgent["run"] = (ctx, inbox) => this.#run(agent, ctx, inbox);
    // An agent may be of a class with private members, which only its own methods reach.
    const replayed = new Proxy(agent, {
      get: (target, name) => {
        if (name === "run") return run;
        if (name === "standsFor") return target;
        if (name === "callPath") return path.current;
        if (name === "subAgents") return target.subAgents?.map((each) => this.of(each));
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    this.#agents.set(agent, replayed);
    return replayed;
  }

  async #run(agent: HostedAgent, ctx: RunContext, inbox: TaskInbox): Promise<JsonValue | void> {
    const calls = await this.#find(ctx);
    if (calls === undefined) return agent.run(ctx, inbox);
    const key = `${ctx.meta.runId} ${ctx.taskId}`;
    this.#tasks.set(key, calls);
    try {
      const output = await agent.run(ctx, inbox);
      if (calls.difference === undefined) return output;
    } catch (error) {
      if (calls.difference === undefined || error instanceof CancellationError) throw error;
    } finally {
      this.#tasks.delete(key);
    }
    // An architecture may go on without the worker that differed. The first difference counts.
    throw calls.fault(calls.difference);
  }
}

type Found = (runId: string, taskId: string) => ReplayedCalls | undefined;

/** The call path of a replayed agent. It is composed again when the call path of the agent has changed (F1). */
class ReplayedPath {
  readonly #agent: HostedAgent;
  readonly #found: Found;
  readonly #before: BeforeCall;
  #own: CallPath | undefined;
  #path: CallPath | undefined;

  constructor(agent: HostedAgent, found: Found) {
    this.#agent = agent;
    this.#found = found;
    this.#before = { name: "recorded results", decide: (call) => this.#answer(call) };
  }

  get current(): CallPath {
    const own = this.#agent.callPath;
    if (this.#path === undefined || this.#own !== own) {
      this.#own = own;
      this.#path = Object.freeze({
        ...own,
        model: { ...own?.model, around: this.#around(own?.model?.around) },
        tool: { ...own?.tool, before: [this.#before, ...(own?.tool?.before ?? [])] },
      });
    }
    return this.#path;
  }

  #around(own: ChatMiddleware | undefined): ChatMiddleware {
    return {
      process: async (context, next) => {
        const calls = this.#found(context.runId, context.taskId);
        if (calls?.modes.model === "recorded") replay(calls, context);
        else if (own === undefined) await next();
        else await own.process(context, next);
      },
    };
  }

  #answer({ facts, taskId, agentId, call, sent }: GatedCall): CallVerdict | undefined {
    const calls = this.#found(facts.runId, taskId);
    if (calls === undefined || calls.modes.tools === "live") return undefined;
    let recorded;
    try {
      recorded = calls.takeTool(agentId, call.toolName, sent);
    } catch {
      // `ReplayedAgents` ends the task with the difference. An error here would only deny the call.
      const { message = "" } = calls.difference ?? {};
      return { decision: "halt", by: "recorded results", reason: message };
    }
    if (recorded === undefined) return undefined;
    return recorded.isNested ? { decision: "allow" } : { decision: "answer", result: recorded.result };
  }
}

function replay(calls: ReplayedCalls, context: ChatContext): void {
  const { agentId, role, request } = context;
  const { reply, failure } = calls.takeModel({ agentId, role, request });
  if (reply === null) throw reviveFault(failure as NonNullable<typeof failure>);
  const { message, stopReason, model } = reply;
  context.result = {
    message,
    stopReason,
    modelId: model.modelId,
    usage: { inputTokens: 0, outputTokens: 0, costUsd: 0 },
  };
}
