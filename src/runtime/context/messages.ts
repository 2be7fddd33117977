import {
  assertJson,
  Fault,
  JsonDigest,
  parseRunId,
  parseTaskId,
  parseTopicId,
  readWait,
  reviveFault,
  rootTaskId,
  timeOfDate,
  type AgentId,
  type AskOutcome,
  type Duration,
  type Failure,
  type InboxChange,
  type InputQueue,
  type JsonValue,
  type Message,
  type PromiseOutcome,
  type ReceivedUpdate,
  type RunId,
  type SignalOptions,
  type StepAddress,
  type TaskHandle,
  type TaskOutcome,
  type TopicId,
  type UpdateReply,
  type WaitForPromiseOptions,
  type WaitForSignalOptions,
  type WaitForUpdateOptions,
} from "../../kernel/index.ts";
import { takesInput } from "../journal/task-record.ts";
import type { TaskState } from "../journal/task-state.ts";
import { isOutcome } from "../journal/recorded-faults.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { none } from "../task/step-outcome.ts";
import type { Body } from "../task/step-body.ts";
import { formatPromiseId, parsePromiseId, promiseKey, settlingMail } from "../journal/promise-ids.ts";
import { findNamed } from "../journal/run-ids.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import {
  joinWait,
  keepsValue,
  mailOfSignal,
  queueWait,
  promiseWait,
  replyWait,
  signalWait,
  timeoutAddress,
  timeoutName,
  updateWait,
} from "../journal/wait-names.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import type { Due } from "../task/wait-registry.ts";
import {
  checkDrainOptions,
  checkTimeout,
  maxDrained,
  noInput,
  requireAgentId,
  requireInboxMessage,
  type DrainOptions,
} from "./context-options.ts";

/** The address at which a wait is recorded, and the time at which it ends without a value. */
interface TimedWait {
  readonly address: StepAddress;
  readonly due: Due | undefined;
}

/**
 * The steps with which a task sends messages and waits for answers, signals and times. A message's id follows from
 * its step, so that sending it again has no effect.
 */
export class MessageSteps {
  readonly #steps: StepExecutor;

  constructor(steps: StepExecutor) {
    this.#steps = steps;
  }

  async ask(
    target: AgentId | TaskHandle,
    body: JsonValue,
    { timeoutMs }: { readonly timeoutMs?: number },
  ): Promise<AskOutcome> {
    const name = typeof target === "string" ? target : target.taskId;
    const clock = typeof target === "string" ? undefined : this.#steps.runner.state.task(target.taskId);
    const { address, due } = await this.#timed(timeoutMs, clock);
    const step: StepIdentity = {
      address,
      kind: "wait",
      name: `ask ${name}`,
      digest: new JsonDigest({ body }),
    };
    return this.#steps.run<AskOutcome>(step, () =>
      typeof target === "string"
        ? this.#askAgent(step.address, target, body, due)
        : this.#askTask(step.address, target, due),
    );
  }

  /** Replies to a message. In a fork the step sends nothing, because only the original run answers. */
  async reply(message: Message, body: JsonValue): Promise<void> {
    requireInboxMessage(message);
    const { runner } = this.#steps;
    return this.send("reply", message.id, body, async ({ address }) => {
      const { replyTo } = message;
      if (replyTo === undefined)
        throw new Fault("invalid_argument", `message ${message.id} does not ask for a reply`);
      if (!runner.state.answersFor(message.id)) return () => undefined;
      const { runId, taskId, wait } = replyTo;
      const id = `reply ${this.#steps.idempotencyKey(address)}`;
      const value = { kind: "replied", body };
      const at = runner.worker.clock.now();
      return () =>
        runner.log.add({
          mail: [{ id, runId, from: runner.agentId, at, body: { type: "resolve", taskId, wait, value } }],
        });
    });
  }

  async sendTo(target: AgentId, body: JsonValue): Promise<void> {
    requireAgentId("ctx.send()", target);
    return this.send("send", target, body, async ({ address }) => () => {
      this.#steps.runner.log.add({ inbox: [this.#delivery(address, target, body)] });
    });
  }

  emit(topic: TopicId, body: JsonValue): Promise<void> {
    const { runner } = this.#steps;
    return this.send("emit", topic, body, async ({ address, cancelScope }) => {
      parseTopicId(topic);
      const reading = runner.log.reading(runner.worker.store.topics.followers(topic));
      const followers = await runner.activity.pauseFor(cancelScope, reading);
      return () =>
        runner.log.add({ inbox: followers.map((follower) => this.#delivery(address, follower, body)) });
    });
  }

  follow(type: "follow" | "unfollow", topicId: TopicId): Promise<void> {
    const { runner } = this.#steps;
    const { agentId } = runner;
    return this.send(type, topicId, null, async () => {
      parseTopicId(topicId);
      return () => runner.log.add({ topics: [{ type, topicId, agentId }] });
    });
  }

  async send(verb: string, target: string, body: JsonValue, perform: Body<void>): Promise<void> {
    const step = this.#steps.identify("send", `${verb} ${target}`, body);
    await this.#steps.run<void>(step, (open) => {
      assertJson(body, `what is to ${verb} ${target}`);
      this.#steps.runner.worker.sizes.assert(body, `what is to ${verb} ${target}`);
      return perform(open, step);
    });
  }

  /**
   * Reserves the address of a wait and returns the time at which `ms` of a task's time will have passed. Pauses of
   * the task do not count (H5). Default: the time of this task. The start of the wait is journaled below its
   * address, so that J4 does not cover the timeout: a waiting run continues even if the code now has another
   * timeout.
   */
  async #timed(ms: number | undefined, task: TaskState = this.#steps.runner.task): Promise<TimedWait> {
    if (Number.isNaN(ms)) throw new Fault("invalid_argument", "invalid timeoutMs NaN: expected milliseconds");
    const address = this.#steps.next();
    const start = timeoutAddress(address);
    if (ms === undefined && !this.#steps.runner.task.steps.has(start)) return { address, due: undefined };
    const digest = JsonDigest.ofNull;
    const step: StepIdentity = { address: start, kind: "value", name: timeoutName, digest };
    const from = await this.#steps.runSync(step, () => {
      if (ms !== undefined) checkTimeout(ms);
      return this.#steps.runner.worker.clock.now() - task.clock.stoppedMs;
    });
    if (ms === undefined) return { address, due: undefined };
    return { address, due: () => (task.clock.isStopped ? null : from + ms + task.clock.stoppedMs) };
  }

  #cameFor(name: string, due: Due | undefined): Promise<JsonValue | undefined> {
    return awaitName(this.#steps.runner, this.#steps.cancelScope, name, due);
  }

  async sleep(time: Duration | Date): Promise<void> {
    const date = timeOfDate(time);
    if (date !== undefined) return this.sleepUntil(date);
    const ms = readWait(time, "ctx.sleep()");
    assertTime("duration of sleep()", ms, "milliseconds");
    await this.#sleepUntil(() => this.#steps.runner.worker.clock.now() + ms);
  }

  async sleepUntil(atMs: number): Promise<void> {
    assertTime("time of sleepUntil()", atMs, "epoch milliseconds");
    await this.#sleepUntil(() => atMs);
  }

  /**
   * Waits until a time. The first call journals the time, because code that computes it from the clock gets a later
   * one on a replay.
   */
  async #sleepUntil(time: () => number): Promise<void> {
    const atMs = await this.#steps.runSync(this.#steps.identify("value", "sleep until", null), time);
    await this.#waitFor(`sleep ${atMs}`, this.#steps.next(), () => atMs);
  }

  /**
   * Waits for a signal. Returns `undefined` after the timeout. J5: if `accept` throws, the wait fails with this
   * error.
   */
  async waitForSignal(
    name: string,
    { timeoutMs, accept }: WaitForSignalOptions,
  ): Promise<JsonValue | undefined> {
    const { address, due } = await this.#timed(timeoutMs);
    const { value } = await this.#waitFor(signalWait(name), address, due, accept);
    return value;
  }

  /**
   * Waits for an update. The record of the wait says whether the update was accepted, and contains the reply to a
   * refused one. After a refused update the wait continues, with the same end time.
   */
  async waitForUpdate(
    name: string,
    { timeoutMs, accept }: WaitForUpdateOptions,
  ): Promise<ReceivedUpdate | undefined> {
    const timed = await this.#timed(timeoutMs);
    for (let { address } = timed; ; address = this.#steps.next()) {
      const step: StepIdentity = {
        address,
        kind: "wait",
        name: updateWait(name),
        digest: JsonDigest.ofNull,
      };
      const { value } = await this.#steps.run<JudgedUpdate>(step, async (open) => {
        const came = (await this.#cameFor(step.name, timed.due)) as ReceivedUpdate | undefined;
        if (came === undefined) return {};
        const failure = await refusalOf(accept, came.value);
        if (failure === undefined) return { value: came };
        const { id } = came;
        open.emit({ type: "update_end", data: { id, name, reply: { status: "refused", failure } } });
        return { value: { id, isRefused: true } };
      });
      if (value === undefined || !("isRefused" in value)) return value;
    }
  }

  /**
   * Replies to an update. The event with the reply is part of the commit of this step, so that each update has only
   * one reply.
   */
  async answerUpdate(name: string, { id }: ReceivedUpdate, reply: UpdateReply): Promise<void> {
    const step = this.#steps.identify("send", `answer ${name}`, { id });
    await this.#steps.run<void>(step, (open) => {
      const where = `the reply to update ${name}`;
      const content: unknown = reply;
      assertJson(content, where);
      this.#steps.runner.worker.sizes.assert(content, where);
      open.emit({ type: "update_end", data: { id, name, reply } });
    });
  }

  /** Sends a signal to another run in the commit of this step. */
  async sendSignal(
    target: string,
    name: string,
    value: JsonValue,
    { taskId, id }: SignalOptions,
  ): Promise<void> {
    await this.send("signal", `${target} ${name}`, value, async ({ address, cancelScope }) => {
      const { runner } = this.#steps;
      const task = taskId === undefined ? rootTaskId : parseTaskId(taskId);
      const reading = reachable(runner, parseRunId(target), `signal ${JSON.stringify(name)}`);
      const runId = await runner.activity.pauseFor(cancelScope, reading);
      const mailId =
        id === undefined
          ? `signal ${this.#steps.idempotencyKey(address)}`
          : mailOfSignal(runId, task, name, id);
      const at = runner.worker.clock.now();
      const body = { type: "resolve", taskId: task, wait: signalWait(name), value } as const;
      return () => runner.log.add({ mail: [{ id: mailId, runId, from: runner.agentId, at, body }] });
    });
  }

  publish(name: string, value: JsonValue): void {
    const where = `the value of ctx.publish(${JSON.stringify(name)})`;
    assertJson(value, where);
    this.#steps.runner.worker.sizes.assert(value, where);
    // The code may change its value before the commit.
    this.#steps.emit({ type: "value_published", data: { name, value: structuredClone(value) } });
  }

  /**
   * Returns the id of a new promise. The id follows from the scope and a number within it, so that it is the same
   * on every replay.
   */
  newPromise(): string {
    const { runner, scope } = this.#steps;
    const key = promiseKey(scope, this.#steps.nextPromise());
    return formatPromiseId({ runId: runner.facts.runId, taskId: runner.taskId, key });
  }

  /** Waits for a promise. J5: the error of a rejected promise is recorded, and so is an error that `accept` throws. */
  async waitForPromise(id: string, { accept }: WaitForPromiseOptions): Promise<JsonValue> {
    const { runId, taskId, key } = parsePromiseId(id);
    const { runner } = this.#steps;
    if (taskId !== runner.taskId || runId !== runner.facts.runId)
      throw new Fault(
        "invalid_argument",
        `promise ${id} belongs to task ${taskId} of ${runId}; only that task can wait for it`,
      );
    const name = promiseWait(key);
    const step: StepIdentity = { address: this.#steps.next(), kind: "wait", name, digest: JsonDigest.ofNull };
    const { value } = await this.#steps.run<{ readonly value: JsonValue }>(step, async () => {
      const outcome = (await this.#cameFor(name, undefined)) as unknown as PromiseOutcome;
      if (outcome.status === "rejected") throw reviveFault(outcome.failure);
      await accept?.(outcome.value);
      return { value: outcome.value };
    });
    return value;
  }

  /** Settles a promise in the commit of this step. */
  async settlePromise(id: string, outcome: PromiseOutcome): Promise<void> {
    const place = parsePromiseId(id);
    await this.send("settle", id, outcome as unknown as JsonValue, async ({ cancelScope }) => {
      const { runner } = this.#steps;
      const reading = reachable(runner, place.runId, `value of promise ${JSON.stringify(id)}`);
      await runner.activity.pauseFor(cancelScope, reading);
      const sender = { from: runner.agentId, at: runner.worker.clock.now() };
      return () => runner.log.add({ mail: [settlingMail(place, outcome, sender)] });
    });
  }

  /** Waits for a name, as a journaled step. `value` is absent if the time `due` came first. */
  #waitFor(
    name: string,
    address: StepAddress,
    due: Due | undefined,
    accept?: WaitForSignalOptions["accept"],
  ): Promise<{ readonly value?: JsonValue }> {
    const { runner, cancelScope } = this.#steps;
    const step: StepIdentity = { address, kind: "wait", name, digest: JsonDigest.ofNull };
    return this.#steps.run<{ readonly value?: JsonValue }>(step, async () => {
      const value = await this.#cameFor(name, due);
      if (value === undefined) return {};
      try {
        await accept?.(value);
      } catch (error) {
        // W1: a branch that was abandoned meanwhile records nothing, so that the next waiter receives the value.
        if (cancelScope.isAbandoned) runner.host.waits.taken(runner.taskId, name);
        throw error;
      }
      return { value };
    });
  }

  async #askAgent(
    address: StepAddress,
    to: AgentId,
    body: JsonValue,
    due: Due | undefined,
  ): Promise<AskOutcome> {
    const { runner } = this.#steps;
    assertJson(body, `what is asked of ${to}`);
    runner.worker.sizes.assert(body, `what is asked of ${to}`);
    const wait = replyWait(address);
    const { runId } = runner.facts;
    const { taskId } = runner;
    runner.log.add({ inbox: [this.#delivery(address, to, body, { runId, taskId, wait })] });
    const came = await this.#cameFor(wait, due);
    return came === undefined ? { kind: "timed_out", partial: null } : (came as unknown as AskOutcome);
  }

  /** H5: waits for the output of a child task. If the wait times out, it cancels the child. */
  async #askTask(
    address: StepAddress,
    { taskId }: TaskHandle,
    due: Due | undefined,
  ): Promise<AskOutcome | (() => AskOutcome)> {
    const { runner, cancelScope } = this.#steps;
    const { host } = runner;
    const timer =
      due === undefined ? undefined : host.waits.wait(runner.taskId, `timeout ${address}`, due, taskId);
    try {
      const ended = host.whenEnded(taskId);
      const first = timer === undefined ? ended : Promise.race([ended, timer.came]);
      const outcome = (await runner.activity.waitFor(cancelScope, first, {
        name: joinWait([taskId]),
        due,
      })) as TaskOutcome | undefined;
      if (outcome !== undefined) return answerOf(outcome);
    } finally {
      timer?.leave();
    }
    return () => {
      host.cancel(taskId, "the hand-off timed out");
      return { kind: "timed_out", partial: null };
    };
  }

  #delivery(
    address: StepAddress,
    to: AgentId,
    body: JsonValue,
    replyTo?: NonNullable<Message["replyTo"]>,
  ): InboxChange {
    const { runner } = this.#steps;
    const id = `${this.#steps.idempotencyKey(address)} ${to}`;
    const { runId, userId, metadata } = runner.facts;
    const sender = { runId, userId, tenantId: runner.host.tenantId, metadata };
    const sentAt = runner.worker.clock.now();
    const message: Message = { id, from: runner.agentId, to, body, sentAt, sender };
    return { type: "deliver", message: replyTo === undefined ? message : { ...message, replyTo } };
  }
}

/** Reads the input that waits in a queue of the task, and removes it from the queue. */
export function drainInput(
  steps: StepExecutor,
  queue: InputQueue,
  options: DrainOptions = {},
): Promise<readonly JsonValue[]> {
  const { mode = "one" } = options;
  const { taskId, task, state } = steps.runner;
  if (!takesInput(task.record)) return steps.exclusive(`drain ${queue}`, () => noInput(queue, options));
  const step = { address: steps.next(), kind: "drain", name: queue, digest: mode } as const;
  return steps.poll<JsonValue>(step, () => {
    checkDrainOptions(queue, options);
    const waiting = state.resolutions.all(taskId, queueWait(queue));
    return waiting.length === 0 ? none : waiting.slice(0, maxDrained[mode]).map(({ value }) => value);
  });
}

/** Waits until a name is resolved or a time is reached. Returns `undefined` if the time is reached first. */
export async function awaitName(
  runner: TaskRunner,
  cancelScope: CancellationScope,
  name: string,
  due: Due | undefined,
): Promise<JsonValue | undefined> {
  const wait = runner.host.waits.wait(runner.taskId, name, due);
  try {
    const value = await runner.activity.waitFor(cancelScope, wait.came, { name, due });
    // No step takes the end of a run, so that the next waiter receives it as well.
    if (keepsValue(name)) wait.leave();
    return value;
  } catch (error) {
    wait.leave();
    throw error;
  }
}

/** The value that a wait for an update records. Absent after the timeout. */
interface JudgedUpdate {
  readonly value?: ReceivedUpdate | { readonly id: string; readonly isRefused: true };
}

/** Returns why an update is not accepted. `undefined` if it is accepted. */
async function refusalOf(
  accept: WaitForUpdateOptions["accept"],
  value: JsonValue,
): Promise<Failure | undefined> {
  try {
    await accept?.(value);
    return undefined;
  } catch (error) {
    if (Fault.is(error) && !isOutcome(error)) throw error;
    // The schema of the update throws `invalid_argument`. An error of the program's own check has no code.
    const fault = Fault.from(error);
    return fault.code === "internal" ? new Fault("update_refused", fault.message).toJSON() : fault.toJSON();
  }
}

/**
 * S6: returns the stored id of a run. Throws `not_found` if the run has ended, or does not exist in the tenant of
 * the task. The call first waits for earlier commits, because an earlier step may have started the run.
 */
function reachable(runner: TaskRunner, named: RunId, what: string): Promise<RunId> {
  return runner.log.reading(findReachable(runner, named, what));
}

async function findReachable(runner: TaskRunner, named: RunId, what: string): Promise<RunId> {
  const { journal } = runner.worker.store;
  const { tenantId } = runner.host;
  const scope = tenantId === null ? undefined : { tenantId };
  let found = await findNamed(journal, named, scope);
  if (found === undefined) {
    await runner.log.flush();
    found = await findNamed(journal, named, scope);
  }
  const summary = found === undefined ? undefined : await journal.summary(found.runId);
  if (summary === undefined)
    throw new Fault("not_found", `the ${what} does not reach run ${named}, because it does not exist`, {
      details: { runId: named },
    });
  const { runId, status, endedAt } = summary;
  if (endedAt === null) return runId;
  throw new Fault(
    "not_found",
    `the ${what} does not reach run ${runId}, because the run has ended (${status})`,
    { details: { runId, status } },
  );
}

function answerOf({ status, output, failure }: TaskOutcome): AskOutcome {
  if (status === "completed") return { kind: "replied", body: output };
  if (status === "paused") return { kind: "target_paused", partial: output };
  return { kind: status === "failed" ? "target_failed" : "target_cancelled", failure };
}

function assertTime(name: string, value: number, unit: string): void {
  if (!Number.isFinite(value))
    throw new Fault("invalid_argument", `invalid ${name} ${value}: expected a finite number of ${unit}`);
}
