import {
  eventDraft,
  Fault,
  readProperty,
  type AttemptContext,
  type CancelSignal,
  type FilePart,
  type JsonObject,
} from "../../kernel/index.ts";
import { A2aClient, RefusedCall, Unreachable, type A2aClientOptions } from "./a2a-client.ts";
import { inputText } from "./hire-records.ts";
import {
  contentOf,
  endStates,
  exchangesOf,
  newExchange,
  readTask,
  textIn,
  wireMessage,
  type RemoteExchange,
  type RemoteRecord,
  type RemoteTask,
} from "./remote-task.ts";

/** The architecture of remote agents, as it appears in the log. */
export const remoteName = "remote";

/** Milliseconds that the other side has to confirm a cancel. */
const cancelMs = 5_000;
/** Milliseconds between two looks at a task without a stream: the first pause, and the longest one. */
const firstPauseMs = 250;
const longestPauseMs = 15_000;
/** Error codes of A2A. */
const unsupported = new Set([-32_004, -32_601, -32_603]);

/** What one remote task works on. */
export interface GivenWork {
  readonly prompt: string;
  /** The parts of the first message. */
  readonly parts: readonly JsonObject[];
  /** The context that an earlier run of the same conversation has used. */
  readonly earlierContext: string | undefined;
  /** What earlier steps of the task have sent. */
  readonly exchanges: readonly RemoteExchange[];
  /** The answer to the question with which the step before has ended. */
  readonly reply: GivenReply | undefined;
}

/** A question of the task of the other side. */
export interface RemoteQuestion {
  readonly taskId: string;
  /** Identifies the status of the task that asks. */
  readonly mark: string;
  readonly text: string;
}

/** The answer to a question of a remote task. */
export interface GivenReply {
  readonly mark: string;
  readonly text: string;
}

export interface RemotePlan extends A2aClientOptions {
  readonly unreachableMs: number;
}

/** The value of an attempt: what was sent so far, and the question for which it has ended. JSON. */
export interface RemoteResult {
  readonly exchanges: readonly RemoteExchange[];
  /** `null`: all messages have their answers. */
  readonly question: RemoteQuestion | null;
}

/**
 * One life of a remote task in this process: messages to an agent of another server, and the tasks that they start there. What
 * is sent is recorded first, so that a later attempt looks for the task, subscribes again, and sends nothing twice.
 */
export class RemoteAttempt {
  readonly #plan: RemotePlan;
  readonly #work: GivenWork;
  readonly #attempt: AttemptContext;
  readonly #exchanges: RemoteExchange[];
  #client: A2aClient | undefined;
  /** Aborted when this process drops the task. */
  readonly #dropped = new AbortController();
  /** Aborted when the task is cancelled or dropped. */
  readonly #signal: CancelSignal;
  /** The text that the log contains of the current answer. */
  #told = "";

  constructor(plan: RemotePlan, work: GivenWork, attempt: AttemptContext) {
    this.#plan = plan;
    this.#work = work;
    this.#attempt = attempt;
    this.#signal = AbortSignal.any([attempt.signal, this.#dropped.signal]);
    this.#exchanges = exchangesOf(work.exchanges, attempt.earlier.kept);
  }

  /** This process drops the task. The task of the other side continues, and a later attempt subscribes to it. */
  drop(): void {
    this.#dropped.abort(new Fault("closed", "this process has dropped the task"));
  }

  async run(): Promise<RemoteResult> {
    try {
      this.#client = await this.#patiently(() => A2aClient.open(this.#plan, this.#signal));
      const queue = this.#unsent();
      for (;;) {
        const last = this.#exchanges.at(-1);
        const question = last === undefined || last.answer !== null ? null : await this.#finish(last);
        if (question !== null) return { exchanges: this.#exchanges, question };
        if (queue.length === 0) queue.push(...(await this.#arrived()));
        const next = queue.shift();
        if (next === undefined) return { exchanges: this.#exchanges, question: null };
        await this.#begin(next);
      }
    } catch (error) {
      // A drop and a cancel abort the same signal; the drop is noted after it.
      await new Promise<void>((resolve) => void setImmediate(resolve));
      if (this.#attempt.signal.aborted && !this.#dropped.signal.aborted) await this.#cancel();
      throw this.#attempt.signal.aborted ? this.#attempt.signal.reason : faultOf(error, this.#plan.name);
    }
  }

  /** The inputs that no attempt has sent: the prompt, and input that an earlier attempt took and did not send. */
  #unsent(): string[] {
    const { steering, followUps } = this.#attempt.earlier;
    const sent = this.#exchanges.map(({ text }) => text);
    return [this.#work.prompt, ...steering.map(inputText), ...followUps.map(inputText)].filter((text) => {
      const at = sent.indexOf(text);
      if (at !== -1) sent.splice(at, 1);
      return at === -1;
    });
  }

  /** Input that has arrived while the agent worked. It is sent after the answer, because an agent need not take it before. */
  async #arrived(): Promise<readonly string[]> {
    const steering = await this.#attempt.steering();
    return [...steering, ...(await this.#attempt.followUps())].map(inputText);
  }

  /** Records a message before it is sent. */
  async #begin(text: string): Promise<void> {
    const number = this.#exchanges.length;
    const id = `${this.#attempt.idempotencyKey}-${number}`;
    const contextId = this.#exchanges.at(-1)?.contextId ?? this.#work.earlierContext ?? `reeve-${id}`;
    const exchange = newExchange({ messageId: id, contextId, text });
    await this.#keep({ type: "send", messageId: id, contextId, text });
    this.#exchanges.push(exchange);
    await this.#send(exchange);
  }

  /** Continues a message until its answer is recorded, or its task asks. */
  async #finish(exchange: RemoteExchange): Promise<RemoteQuestion | null> {
    if (exchange.taskId === null) {
      const found = await this.#find(exchange);
      if (found === undefined) {
        this.#event("message_resent", { messageId: exchange.messageId });
        await this.#send(exchange);
      } else await this.#noteTask(exchange, found);
    } else if (this.#attempt.number > 1) this.#event("task_resumed", { taskId: exchange.taskId });
    const current = this.#exchanges.at(-1);
    if (current === undefined || current.taskId === null || current.answer !== null) return null;
    return this.#follow(current, current.taskId);
  }

  /** Sends a message, as one paid call whose price is unknown. */
  async #send(exchange: RemoteExchange): Promise<void> {
    const index = this.#exchanges.indexOf(exchange);
    const parts = index === 0 ? this.#work.parts : [{ text: exchange.text }];
    const { messageId, contextId } = exchange;
    await this.#post(wireMessage(messageId, parts, { contextId }), exchange);
  }

  /** Sends the first message of an exchange, and looks for its task if the answer is lost. */
  async #post(message: JsonObject, exchange: RemoteExchange): Promise<void> {
    const params = { message, configuration: { returnImmediately: true } };
    await this.#metered(async (signal) => {
      let isLost = false;
      await this.#patiently(async () => {
        const found = isLost ? await this.#find(exchange) : undefined;
        if (found !== undefined) return this.#noteTask(exchange, found);
        try {
          const answer = await this.#connected.call("SendMessage", params, signal, false);
          const task = readTask(readProperty(answer, "task"));
          if (task !== undefined) return await this.#noteTask(exchange, task);
          const { parts } = (readProperty(answer, "message") ?? {}) as { readonly parts?: unknown };
          return await this.#noteAnswer(exchange, contentOf(parts));
        } catch (error) {
          isLost ||= error instanceof Unreachable && error.mayHaveArrived;
          throw error;
        }
      });
    });
  }

  /** B4: a message counts as one turn of a model without a known price, so that a cap on cost refuses it. */
  async #metered(send: (signal: CancelSignal) => Promise<void>): Promise<void> {
    const request = { provider: "a2a", model: this.#plan.name, inputTokens: 0, maxOutputTokens: 1 };
    await this.#attempt.metered(request, async ({ signal }) => {
      await send(signal);
      return { value: null, usage: { inputTokens: 0, outputTokens: 0 } };
    });
  }

  async #noteTask(exchange: RemoteExchange, { id, contextId }: RemoteTask): Promise<void> {
    const place = { id, contextId: contextId === "" ? exchange.contextId : contextId };
    await this.#keep({ type: "task", ...place });
    const at = this.#exchanges.indexOf(exchange);
    this.#exchanges.splice(at, 1, { ...exchange, taskId: id, contextId: place.contextId });
    this.#event("task_started", { taskId: id });
  }

  async #noteAnswer(
    exchange: RemoteExchange,
    { text, files }: { readonly text: string; readonly files: readonly FilePart[] },
  ): Promise<void> {
    this.#say(text);
    this.#attempt.tell({ type: "message_end" });
    this.#told = "";
    const answer = { type: "answer", text, files } as const;
    await this.#keep(answer);
    exchange.answer = answer;
  }

  /** Looks for the task of a message whose answer was lost. `undefined` if the message did not arrive. */
  async #find({ contextId, messageId }: RemoteExchange): Promise<RemoteTask | undefined> {
    const params = { contextId, historyLength: 100, pageSize: 100 };
    try {
      const page = await this.#patiently(() => this.#connected.call("ListTasks", params, this.#signal));
      const tasks = readProperty(page, "tasks");
      const all = (Array.isArray(tasks) ? tasks : []).flatMap((task) => readTask(task) ?? []);
      return all.find(({ messageIds }) => messageIds.includes(messageId));
    } catch (error) {
      if (!(error instanceof RefusedCall)) throw error;
      throw new Fault(
        "cannot_resume",
        `the work of ${this.#plan.name} cannot be continued: this process died while it sent a message, and the agent lists no tasks (${error.message}). The message is not sent again, because its work could be repeated`,
        { cause: error },
      );
    }
  }

  /** Follows a task until it has ended or asks. */
  async #follow(exchange: RemoteExchange, taskId: string): Promise<RemoteQuestion | null> {
    let pauseMs = firstPauseMs;
    for (;;) {
      const hasChanged = await this.#patiently(() => this.#subscribe(taskId));
      const task = await this.#patiently(() => this.#read(taskId));
      if (task.state === "TASK_STATE_COMPLETED") {
        await this.#noteAnswer(exchange, task.text === "" ? { ...task, text: task.said } : task);
        return null;
      }
      if (endStates.has(task.state)) throw endedWithout(this.#plan.name, task);
      if (task.state === "TASK_STATE_AUTH_REQUIRED")
        throw new Fault(
          "agent_login_required",
          `${this.#plan.name} asks for a login: ${task.said}; set headers of remoteAgent()`,
        );
      if (task.state === "TASK_STATE_INPUT_REQUIRED") {
        const { reply } = this.#work;
        if (reply?.mark !== task.mark) return { taskId, mark: task.mark, text: task.said };
        const isRepeated = exchange.reply?.mark === task.mark;
        await this.#reply(exchange, task, reply.text);
        pauseMs = isRepeated ? Math.min(pauseMs * 2, longestPauseMs) : firstPauseMs;
        if (isRepeated) await this.#pause(pauseMs);
        continue;
      }
      pauseMs = hasChanged ? firstPauseMs : Math.min(pauseMs * 2, longestPauseMs);
      await this.#pause(pauseMs);
    }
  }

  async #read(id: string): Promise<RemoteTask> {
    const task = readTask(await this.#connected.call("GetTask", { id }, this.#signal));
    if (task === undefined) throw new Fault("agent_protocol", `${this.#plan.name} sent no task to GetTask`);
    return task;
  }

  /** Shows the text of a task while it is written. Returns whether the task has sent anything new. */
  async #subscribe(id: string): Promise<boolean> {
    let count = 0;
    try {
      for await (const update of this.#connected.stream("SubscribeToTask", { id }, this.#signal)) {
        count++;
        const changed = readProperty(update, "artifactUpdate");
        const { text } = contentOf(readProperty(readProperty(changed, "artifact"), "parts"));
        if (text !== "") this.#say(readProperty(changed, "append") === true ? this.#told + text : text);
        const told = readProperty(update, "statusUpdate") ?? readProperty(update, "task");
        const status = readProperty(told, "status");
        const state = textIn(status, "state");
        if (endStates.has(state) || state === "TASK_STATE_INPUT_REQUIRED") break;
      }
    } catch (error) {
      // An agent without streams, or a task that has ended: the task itself says more.
      if (!(error instanceof RefusedCall) || !unsupported.has(error.code)) throw error;
    }
    return count > 1;
  }

  /** Writes the text of the answer to the log, as far as it is new. */
  #say(text: string): void {
    if (text === this.#told) return;
    const isContinued = text.startsWith(this.#told);
    if (!isContinued) this.#attempt.tell({ type: "message_end" });
    this.#attempt.tell({ type: "text", text: isContinued ? text.slice(this.#told.length) : text });
    this.#told = text;
  }

  /** Sends the answer to the question of a task. */
  async #reply(exchange: RemoteExchange, { id, mark }: RemoteTask, text: string): Promise<void> {
    let { reply } = exchange;
    if (reply?.mark !== mark) {
      const messageId = `${exchange.messageId}/${mark}`.slice(0, 400);
      reply = { type: "reply", messageId, mark, text };
      await this.#keep(reply);
      exchange.reply = reply;
    }
    const message = wireMessage(reply.messageId, [{ text: reply.text }], {
      contextId: exchange.contextId,
      taskId: id,
    });
    const params = { message, configuration: { returnImmediately: true } };
    await this.#metered(async (signal) => {
      try {
        await this.#connected.call("SendMessage", params, signal, false);
      } catch (error) {
        // The task shows whether the answer has arrived: if it asks the same, the answer is sent again.
        if (!(error instanceof Unreachable)) throw error;
        this.#event("unreachable", { reason: error.message });
      }
    });
  }

  /** Cancels the task of the other side, with the run or its deadline. */
  async #cancel(): Promise<void> {
    const last = this.#exchanges.at(-1);
    if (last === undefined || last.taskId === null || last.answer !== null) return;
    const { taskId } = last;
    const problem = await cancelTask(this.#plan, taskId);
    if (problem === undefined) this.#event("task_cancelled", { taskId });
    else this.#event("cancel_failed", { taskId, reason: problem });
  }

  get #connected(): A2aClient {
    if (this.#client === undefined) throw new Fault("internal", "the card of the agent was not read");
    return this.#client;
  }

  /** Repeats a request while the agent cannot be reached, for `unreachableMs`. */
  async #patiently<Value>(send: () => Promise<Value>): Promise<Value> {
    const { clock, unreachableMs } = this.#plan;
    const since = clock.now();
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        return await send();
      } catch (error) {
        if (!(error instanceof Unreachable) || clock.now() - since > unreachableMs) throw error;
        if (clock.now() === since || pauseMs === firstPauseMs)
          this.#event("unreachable", { reason: error.message });
        await this.#pause(pauseMs);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    const signal = this.#signal;
    signal.throwIfAborted();
    const { clock } = this.#plan;
    const over = Promise.withResolvers<void>();
    const cancel = clock.schedule(clock.now() + ms, over.resolve);
    const wake = (): void => over.resolve();
    signal.addEventListener("abort", wake, { once: true });
    await over.promise;
    cancel();
    signal.removeEventListener("abort", wake);
    signal.throwIfAborted();
  }

  #event(name: string, data: JsonObject): void {
    this.#attempt.emitEvent(eventDraft("architecture_event", { architecture: remoteName, name, data }));
  }

  async #keep(record: RemoteRecord): Promise<void> {
    await this.#attempt.keep(record as unknown as JsonObject);
  }
}

/** Cancels a task of a remote agent. Returns why that was not possible. */
export async function cancelTask(plan: RemotePlan, id: string): Promise<string | undefined> {
  const { clock } = plan;
  const late = new AbortController();
  const cancel = clock.schedule(clock.now() + cancelMs, () => late.abort());
  try {
    const client = await A2aClient.open(plan, late.signal);
    await client.call("CancelTask", { id }, late.signal);
    return undefined;
  } catch (error) {
    return Fault.from(error).message;
  } finally {
    cancel();
  }
}

function endedWithout(name: string, { id, state, said }: RemoteTask): Fault {
  const word = state.replace("TASK_STATE_", "").toLowerCase();
  const why = said === "" ? "" : `: ${said.slice(0, 2_000)}`;
  return new Fault("child_failed", `${name} ended its task ${id} as ${word}${why}`, {
    details: { taskId: id, state },
  });
}

function faultOf(error: unknown, name: string): unknown {
  if (error instanceof Unreachable)
    return new Fault("agent_crashed", `${name} cannot be reached: ${error.message}`, { cause: error });
  if (error instanceof RefusedCall)
    return new Fault("child_failed", `${name} refused a request: ${error.message}`, {
      details: { code: error.code },
      cause: error,
    });
  return error;
}
