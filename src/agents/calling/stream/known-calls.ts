import type { RunId, TaskId } from "../../../kernel/index.ts";

/** A tool call of a run. */
export interface KnownCall {
  /** Unique in the store. */
  readonly callId: string;
  readonly toolName: string;
  isEnded: boolean;
  /** The open or last question about the call. */
  approvalId?: string;
  /** Whether a person denied or skipped the call. */
  isRefused: boolean;
}

/** The task that makes a call. */
interface CallingTask {
  readonly runId: RunId;
  readonly taskId: TaskId;
}

/**
 * The tool calls of a run with ids that are unique in the store. J2: providers repeat the ids of calls, so an id starts with
 * that of the run and a repeated id gets a suffix.
 */
export class KnownCalls {
  readonly #ids = new Set<string>();
  readonly #calls = new Map<string, KnownCall[]>();

  add({ runId, taskId }: CallingTask, callId: string, toolName: string): KnownCall {
    const first = `${runId}/${callId}`;
    let unique = first;
    for (let count = 2; this.#ids.has(unique); count++) unique = `${first}~${count}`;
    this.#ids.add(unique);
    const call: KnownCall = { callId: unique, toolName, isEnded: false, isRefused: false };
    const key = `${taskId} ${callId}`;
    const known = this.#calls.get(key);
    if (known === undefined) this.#calls.set(key, [call]);
    else known.push(call);
    return call;
  }

  /** The first call of a task with a provider's id that has not ended. */
  open(taskId: TaskId, callId: string): KnownCall | undefined {
    return this.#calls.get(`${taskId} ${callId}`)?.find(({ isEnded }) => !isEnded);
  }

  /** The call of a task about which a question is asked: the first one without a question, or else the last one. */
  asked(taskId: TaskId, callId: string): KnownCall | undefined {
    const open = this.#calls.get(`${taskId} ${callId}`)?.filter(({ isEnded }) => !isEnded) ?? [];
    return open.find(({ approvalId }) => approvalId === undefined) ?? open.at(-1);
  }
}
