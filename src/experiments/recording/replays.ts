import {
  readProperty,
  rootTaskId,
  type Event,
  type HostedAgent,
  type JsonValue,
  type RunContext,
  type TaskId,
} from "../../kernel/index.ts";
import { ReplayedAgents } from "./replayed-agent.ts";
import { ReplayedCalls, type ReplayModes } from "./replayed-calls.ts";
import type { RunRecording } from "./run-recording.ts";

/** The task of one trial. The branch of the experiment that started the task opens it. */
interface OpenedTask {
  readonly runId: string;
  readonly taskId: TaskId;
  /** The record that answers the calls of the task and the tasks below it. `null` if its calls are live. */
  readonly recording: RunRecording | null;
  readonly modes: ReplayModes;
  /** Reads the events of the task and the tasks below it that earlier processes have committed. */
  readonly events: () => AsyncIterable<Event>;
}

/** Returns the calls that answer a task. The first reader skips the calls that earlier processes have answered. */
type CallReader = () => Promise<ReplayedCalls | undefined>;

/**
 * The replays of the experiments of this process. At its start, a task of an agent waits until the branch of the
 * experiment that started the task, or the tasks above it, has opened it. That branch runs again in every process
 * that continues the experiment. Tasks of other runs do not wait.
 */
class Replays {
  readonly #agents = new ReplayedAgents((ctx) => this.#find(ctx));
  readonly #experiments = new Set<string>();
  readonly #opened = new Map<string, PromiseWithResolvers<CallReader>>();

  /**
   * Returns the agents of an experiment whose cases may have recordings. Two experiments with the same agent get
   * the same replayed agent.
   */
  agentsOf(experimentId: string, agents: Iterable<HostedAgent>): readonly HostedAgent[] {
    this.#experiments.add(experimentId);
    return [...agents].map((agent) => this.#agents.of(agent));
  }

  /** Lets the task of a trial begin. Calls that were answered before its process died are not answered again. */
  open({ runId, taskId, recording, modes, events }: OpenedTask): void {
    let read: Promise<ReplayedCalls | undefined> | undefined;
    const reader = async (): Promise<ReplayedCalls | undefined> => {
      if (recording === null) return undefined;
      const calls = new ReplayedCalls(recording, modes);
      await skipAnswered(calls, events());
      return calls;
    };
    this.#task(`${runId} ${taskId}`).resolve(() => (read ??= reader()));
  }

  /** Forgets the task of a trial that has ended. */
  close(runId: string, taskId: TaskId): void {
    this.#opened.delete(`${runId} ${taskId}`);
  }

  async #find(ctx: RunContext): Promise<ReplayedCalls | undefined> {
    const { runId, supervision } = ctx.meta;
    if (!this.#experiments.has(supervision?.rootId ?? "")) return undefined;
    const { accounts } = ctx.snapshot.ledger;
    let top = ctx.taskId;
    for (;;) {
      const parent = accounts[top]?.parentId ?? null;
      if (parent === null || parent === rootTaskId) break;
      top = parent;
    }
    return (await this.#task(`${runId} ${top}`).promise)();
  }

  #task(key: string): PromiseWithResolvers<CallReader> {
    const known = this.#opened.get(key);
    if (known !== undefined) return known;
    const made = Promise.withResolvers<CallReader>();
    this.#opened.set(key, made);
    return made;
  }
}

export const replays: Replays = new Replays();

/** The input with which a case of a stored run begins: the input of the case, after the messages of the session. */
export function recordedInput(input: JsonValue, { session, schema }: RunRecording): JsonValue {
  if (session.length === 0 && schema === null) return input;
  const history = session as unknown as JsonValue;
  return {
    prompt: input,
    ...(session.length > 0 && { history }),
    ...(schema !== null && { output: schema }),
  };
}

/** Skips the recorded calls that earlier processes have answered in the task of a trial. */
async function skipAnswered(calls: ReplayedCalls, events: AsyncIterable<Event>): Promise<void> {
  const inputs = new Map<string, JsonValue[]>();
  for await (const event of events) {
    const { taskId, agentId } = event;
    if (event.type === "tool_execution_start") {
      const key = `${taskId} ${event.data.callId}`;
      inputs.set(key, [...(inputs.get(key) ?? []), event.data.input]);
    } else if (event.type === "architecture_event" && event.data.name === "agent.tool_call_repaired") {
      const key = `${taskId} ${String(readProperty(event.data.data, "callId"))}`;
      const input = readProperty(readProperty(event.data.data, "repaired"), "input") as JsonValue | undefined;
      if (input !== undefined) inputs.set(key, [...(inputs.get(key) ?? []).slice(0, -1), input]);
    } else if (event.type === "tool_execution_end") {
      const { callId, toolName } = event.data;
      const input = inputs.get(`${taskId} ${callId}`)?.shift();
      if (input !== undefined) calls.skipTool(toolName, input);
    } else if (event.type === "message_end" && event.data.message.role === "assistant")
      calls.skipModel(agentId, event.data.modelRole ?? "main", event.data.message);
  }
}
