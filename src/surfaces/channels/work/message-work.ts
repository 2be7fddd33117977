import { Fault, type RunHandle, type Runtime } from "../../../kernel/index.ts";
import type { Owner } from "../access/owner.ts";
import { answerText } from "../answer-text.ts";
import { allRecords, namespaces } from "../channel-records.ts";
import { obeyedOrders } from "../../http/obeyed-orders.ts";
import { addOffered } from "./continued-run.ts";
import { type ChannelParts, viewOf } from "./parts.ts";
import type { AskedRun, Questions } from "./questions.ts";
import type { SendQueue } from "./send-queue.ts";
import {
  compareEntries,
  entryOf,
  runIdOf,
  valueOf,
  type MessageEntry,
  type StoredMessage,
} from "./stored-message.ts";
import { startRun, transientCodes } from "./start-run.ts";
import { backoffMs, wait } from "./wait.ts";

const intervalMs = 4_500;
/** Time after which a run shows no further typing signs, because it may wait for days. Milliseconds. */
const longestMs = 600_000;

/** Shows in a conversation that an answer is being prepared. An error ends this and has no other effect. */
class Typing {
  readonly #parts: ChannelParts;
  readonly #conversationId: string;
  readonly #signal: AbortSignal;
  #current: AbortController | undefined;

  constructor(parts: ChannelParts, conversationId: string, signal: AbortSignal) {
    this.#parts = parts;
    this.#conversationId = conversationId;
    this.#signal = signal;
  }

  start(): void {
    if (this.#current !== undefined || this.#parts.channel.showTyping === undefined) return;
    this.#current = new AbortController();
    void this.#show(AbortSignal.any([this.#current.signal, this.#signal]));
  }

  stop(): void {
    this.#current?.abort();
    this.#current = undefined;
  }

  async #show(signal: AbortSignal): Promise<void> {
    const { channel, clock, log } = this.#parts;
    const end = clock.now() + longestMs;
    try {
      while (!signal.aborted && clock.now() < end) {
        await channel.showTyping?.(this.#conversationId, signal);
        await wait(clock, intervalMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) log(`channel ${channel.name}: ${Fault.from(error).message}`);
    }
  }
}

/**
 * Time for which the id of an answered message is kept, in milliseconds. A message that arrives again later counts
 * as a new one.
 */
const seenMs = 7 * 86_400_000;
/** Number of times that a message may fail for reasons that waiting does not resolve. */
const maxFailures = 10;
const stopReason = "stopped in the channel";

/**
 * Processes the stored messages of a channel, while this process holds the channel's lease. Each message is one
 * record whose state changes with one write, so that another process continues at every point: it submits the same
 * run again, which has no effect, follows it, and delivers the pieces that are not marked as sent.
 */
export class MessageWork {
  readonly #parts: ChannelParts;
  readonly #questions: Questions;
  readonly #queue: SendQueue;
  readonly #signal: AbortSignal;
  /** Keys of the messages that this process is processing or has queued. */
  readonly #known = new Set<string>();
  /** The waiting messages of each session, in order. */
  readonly #waiting = new Map<string, MessageEntry[]>();
  /** The message of each session whose run is in progress. */
  readonly #active = new Map<string, MessageEntry>();
  /** Keys of the messages that `/stop` has stopped. */
  readonly #stopped = new Set<string>();
  readonly #inProgress = new Set<Promise<void>>();

  constructor(parts: ChannelParts, questions: Questions, queue: SendQueue, signal: AbortSignal) {
    this.#parts = parts;
    this.#questions = questions;
    this.#queue = queue;
    this.#signal = signal;
  }

  /** Starts to process all stored messages that this process does not process yet. */
  async load(): Promise<void> {
    const { records, channel } = this.#parts;
    const found = await allRecords(records, namespaces.messages, `${channel.name}/`);
    const entries = found.map(entryOf).filter(({ key }) => !this.#known.has(key));
    for (const entry of entries.toSorted(compareEntries)) this.add(entry);
  }

  /** Takes up a message. */
  add(entry: MessageEntry): void {
    if (this.#known.has(entry.key) || this.#signal.aborted) return;
    this.#known.add(entry.key);
    const { state, command, answers, sessionId } = entry.message;
    if (state === "answering") this.#deliver(entry);
    else if (command !== null || answers !== null)
      this.#spawn(() => this.#attempts(entry, () => this.#act(entry)));
    else {
      this.#insert(entry);
      this.#startNext(sessionId);
    }
  }

  /** Resolves when everything in progress has stopped. */
  async settled(): Promise<void> {
    while (this.#inProgress.size > 0) await Promise.allSettled(this.#inProgress);
  }

  #insert(entry: MessageEntry): void {
    const { sessionId, state } = entry.message;
    const queue = this.#waiting.get(sessionId) ?? [];
    // A message whose run has started is ahead of all that wait.
    if (state === "running") queue.unshift(entry);
    else {
      const at = queue.findIndex(
        (each) => each.message.state === "queued" && compareEntries(entry, each) < 0,
      );
      queue.splice(at === -1 ? queue.length : at, 0, entry);
    }
    this.#waiting.set(sessionId, queue);
  }

  #startNext(sessionId: string): void {
    if (this.#active.has(sessionId) || this.#signal.aborted) return;
    const queue = this.#waiting.get(sessionId);
    const entry = queue?.shift();
    if (queue?.length === 0) this.#waiting.delete(sessionId);
    if (entry === undefined) return;
    this.#active.set(sessionId, entry);
    this.#spawn(async () => {
      await this.#attempts(entry, () => this.#work(entry));
      this.#active.delete(sessionId);
      this.#startNext(sessionId);
    });
  }

  #spawn(task: () => Promise<void>): void {
    const done = task().finally(() => this.#inProgress.delete(done));
    this.#inProgress.add(done);
  }

  /**
   * Runs a task again after a failure, for example while the store is not available, until it succeeds or the host
   * stops. Never rejects.
   */
  async #attempts(entry: MessageEntry, task: () => Promise<void>): Promise<void> {
    const { clock, channel, log } = this.#parts;
    for (let failures = 0; !this.#signal.aborted; failures++) {
      try {
        return await task();
      } catch (error) {
        const { code, message } = Fault.from(error);
        if (this.#signal.aborted) return;
        if (code === "lease_lost") {
          // Another process works on the message.
          this.#known.delete(entry.key);
          return;
        }
        if (failures >= maxFailures && !transientCodes.has(code)) return this.#giveUp(entry, message);
        log(`channel ${channel.name}: a message is tried again later: ${message}`);
      }
      await wait(clock, backoffMs(failures), this.#signal);
    }
  }

  /** Removes a message that fails again and again, so that it does not block later messages. */
  async #giveUp(entry: MessageEntry, reason: string): Promise<void> {
    const { channel, log } = this.#parts;
    log(`channel ${channel.name}: a message is abandoned after ${maxFailures} attempts: ${reason}`);
    try {
      await this.#finish(entry);
    } catch (error) {
      // The next process tries again.
      log(`channel ${channel.name}: ${Fault.from(error).message}`);
    }
  }

  /** Submits the run of a message, follows it to its end and queues the answer. */
  async #work(entry: MessageEntry): Promise<void> {
    const owner = await this.#parts.senders.ownerOf(entry.message.senderId);
    if (owner === undefined) return this.#drop(entry);
    if (entry.message.state === "queued") await this.#start(entry, owner);
    if (entry.message.state === "running") await this.#follow(entry, owner);
    this.#deliver(entry);
  }

  async #start(entry: MessageEntry, owner: Owner): Promise<void> {
    const { conversationId, messageId, continues } = entry.message;
    if (continues !== undefined) return this.#continue(entry, owner, continues);
    const runId = runIdOf(this.#parts.channel.name, conversationId, messageId);
    const started = await startRun(this.#parts, {
      message: entry.message,
      owner,
      runId,
      signal: this.#signal,
    });
    this.#signal.throwIfAborted();
    if ("reply" in started) await this.#update(entry, { state: "answering", reply: started.reply });
    else await this.#update(entry, { state: "running", runId: started.runId });
  }

  /** Adds the top-up that the person has accepted. */
  async #continue(
    entry: MessageEntry,
    owner: Owner,
    { topUp }: NonNullable<StoredMessage["continues"]>,
  ): Promise<void> {
    const { runtime, store, channel, log } = this.#parts;
    const run = await viewOf(runtime, owner).find(entry.message.runId ?? "");
    try {
      if (run !== undefined) await addOffered(run.as(owner.userId), topUp, store);
    } catch (error) {
      const { code, message } = Fault.from(error);
      // Another person has used up what top-ups may add, or has sent the input of the run again.
      if (code !== "permission_denied" && code !== "already_exists") throw error;
      log(`channel ${channel.name}: a run was not continued: ${message}`);
      const reply = "The run was not continued: the amount can no longer be added.";
      return this.#update(entry, { state: "answering", reply });
    }
    await this.#update(entry, { state: "running" });
  }

  async #follow(entry: MessageEntry, owner: Owner): Promise<void> {
    const { conversationId, sessionId, runId, senderId, continues } = entry.message;
    const run = await viewOf(this.#parts.runtime, owner).find(runId ?? "");
    if (run === undefined)
      return this.#update(entry, { state: "answering", reply: "The run of this message was deleted." });
    const asked: AskedRun = { run, owner, conversationId, sessionId, senderId };
    if (this.#stopped.delete(entry.key)) await run.as(owner.userId).cancel(stopReason);
    const typing = new Typing(this.#parts, conversationId, this.#signal);
    typing.start();
    try {
      if (continues !== undefined) await obeyedOrders(this.#parts.store, run.runId, this.#signal);
      await this.#untilEnded(asked, typing, continues?.topUp.fromSeq ?? 0);
    } finally {
      typing.stop();
    }
    this.#signal.throwIfAborted();
    await this.#questions.closeAll(asked);
    await this.#questions.offer(asked, continues?.messageId ?? entry.message.messageId);
    await this.#update(entry, { state: "answering" });
  }

  async #untilEnded(asked: AskedRun, typing: Typing, fromSeq: number): Promise<void> {
    const types = ["approval_request", "approval_decision", "run_end"] as const;
    for await (const event of asked.run.events({ types, fromSeq, signal: this.#signal })) {
      if (event.type === "approval_request") {
        typing.stop();
        await this.#questions.ask(asked, this.#queue);
      }
      if (event.type === "approval_decision") {
        await this.#questions.closeDecided(asked, event.data.approvalId, event.data.decision);
        typing.start();
      }
      if (event.type === "run_end") return;
    }
  }

  /** Queues the answer of a message. The next message of the session does not wait for the delivery. */
  #deliver(entry: MessageEntry): void {
    this.#spawn(() =>
      this.#queue.enqueue(entry.message.conversationId, () =>
        this.#attempts(entry, () => this.#sendAnswer(entry)),
      ),
    );
  }

  async #sendAnswer(entry: MessageEntry): Promise<void> {
    const { channel, senders, runtime } = this.#parts;
    const { message } = entry;
    const { conversationId, messageId, runId, senderId, continues } = message;
    const owner = await senders.ownerOf(senderId);
    if (owner === undefined) return this.#drop(entry);
    const { text, status } = await answerOf(viewOf(runtime, owner), message);
    const texts = text === "" ? [] : (channel.pieces?.(text) ?? [text]);
    for (const [index, each] of texts.entries()) {
      if (index < message.sent) continue;
      const outcome = await this.#queue.send(
        {
          deliveryId: `${runIdOf(channel.name, conversationId, messageId)}-${index + 1}`,
          kind: message.reply === null ? "answer" : "notice",
          conversationId,
          text: each,
          replyTo: continues?.messageId ?? messageId,
          ...(runId !== null && { runId }),
          ...(status !== undefined && { status }),
          piece: index + 1,
          pieces: texts.length,
        },
        message.receivedAt,
      );
      if (outcome === undefined) return;
      if (outcome.kind === "failed") break;
      if (index + 1 < texts.length) await this.#update(entry, { sent: index + 1 });
    }
    if (runId !== null && !(await this.#questions.sendOffers(conversationId, runId, this.#queue))) return;
    await this.#finish(entry, status);
  }

  /** Executes a command, or answers a question with a text. */
  async #act(entry: MessageEntry): Promise<void> {
    const { senders, agent } = this.#parts;
    const { command, answers, conversationId, text, senderId } = entry.message;
    if ((await senders.ownerOf(senderId)) === undefined) return this.#drop(entry);
    if (answers !== null) {
      if (await this.#questions.answerText(answers, conversationId, text)) return this.#finish(entry);
      // The question was answered meanwhile: the text is a message like any other.
      await this.#update(entry, { answers: null });
      this.#insert(entry);
      this.#startNext(entry.message.sessionId);
      return;
    }
    const reply =
      command === "stop"
        ? await this.#stop(entry)
        : command === "new"
          ? "A new conversation begins."
          : `You are connected to ${agent}. Write a message. /new starts a new conversation, /stop stops the answer in work.`;
    await this.#update(entry, { state: "answering", reply });
    this.#deliver(entry);
  }

  /** Cancels the run of the session and discards the messages that wait in it. */
  async #stop(entry: MessageEntry): Promise<string> {
    const { sessionId, senderId } = entry.message;
    const active = this.#active.get(sessionId);
    const discarded = (this.#waiting.get(sessionId) ?? []).filter((each) => compareEntries(each, entry) < 0);
    for (const each of discarded) {
      this.#waiting.set(
        sessionId,
        (this.#waiting.get(sessionId) ?? []).filter((other) => other !== each),
      );
      // The sender may ask for the answer again. Stored only with the id, because a message with a reply is not worked on.
      each.message = { ...each.message, reply: "This message was discarded by /stop." };
      await this.#finish(each);
    }
    const owner = await this.#parts.senders.ownerOf(senderId);
    if (owner === undefined || active === undefined)
      return discarded.length === 0 ? "Nothing is in work." : `${waitingWord(discarded.length)} discarded.`;
    const { conversationId, messageId, runId } = active.message;
    // The run may not be submitted yet.
    this.#stopped.add(active.key);
    const id = runId ?? runIdOf(this.#parts.channel.name, conversationId, messageId);
    const run = await viewOf(this.#parts.runtime, owner).find(id);
    await run?.as(owner.userId).cancel(stopReason);
    return discarded.length === 0 ? "Stopped." : `Stopped. ${waitingWord(discarded.length)} discarded.`;
  }

  /** Removes a message whose sender may not use the channel any more. */
  async #drop(entry: MessageEntry): Promise<void> {
    const { channel, log } = this.#parts;
    const sender = JSON.stringify(entry.message.senderId);
    log(`channel ${channel.name}: dropped a message of sender ${sender}, who is not admitted any more`);
    await this.#finish(entry);
  }

  /** Stores the id of the message, then removes the message. After a crash in between, only this is repeated. */
  async #finish(entry: MessageEntry, status?: string): Promise<void> {
    const { records, clock } = this.#parts;
    const { key, message } = entry;
    const { runId, reply, senderId } = message;
    await records.put(
      {
        namespace: namespaces.seen,
        key,
        value: { runId, reply, senderId, status: status ?? null },
        dueAt: clock.now() + seenMs,
      },
      "absent",
    );
    const deleted = await records.delete({ namespace: namespaces.messages, key }, entry.version);
    if (deleted.kind === "conflict" && deleted.current !== undefined) throw lost();
    this.#known.delete(key);
    this.#stopped.delete(key);
  }

  async #update(entry: MessageEntry, changes: Partial<StoredMessage>): Promise<void> {
    const { key, version } = entry;
    const message = { ...entry.message, ...changes };
    const written = await this.#parts.records.put(
      { namespace: namespaces.messages, key, value: valueOf(message) },
      version,
    );
    if (written.kind === "conflict") throw lost();
    entry.version = written.version;
    entry.message = message;
  }
}

/** The text that answers a message, and how its run ended. */
export async function answerOf(
  runtime: Runtime,
  { reply, runId }: Pick<StoredMessage, "reply" | "runId">,
): Promise<{ readonly text: string; readonly status?: string }> {
  if (reply !== null) return { text: reply };
  const run: RunHandle | undefined = runId === null ? undefined : await runtime.find(runId);
  if (run === undefined) return { text: "The run of this message was deleted." };
  const result = await run.result();
  return { text: answerText(result, await run.topUpLeft()), status: result.status };
}

function lost(): Fault {
  return new Fault("lease_lost", "another process works on the message");
}

function waitingWord(count: number): string {
  return count === 1 ? "1 waiting message was" : `${count} waiting messages were`;
}
