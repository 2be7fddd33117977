import { type Clock, Fault, type JsonValue, type Records } from "../../kernel/index.ts";
import type { Owner } from "./access/owner.ts";
import { namespaces, overwrite } from "./channel-records.ts";
import { hasOrders } from "../http/obeyed-orders.ts";
import { shortDigest } from "../http/short-digest.ts";
import { isStoppedAtLimit } from "../view/top-up-offer.ts";
import type {
  ChannelPort,
  DecisionReceipt,
  IncomingDecision,
  IncomingMessage,
  MessageName,
  MessageOutcome,
  OutgoingMessage,
  Receipt,
} from "./channel.ts";
import { ChannelLease, renewMs } from "./work/channel-lease.ts";
import { continuationId, seqAfterEnd } from "./work/continued-run.ts";
import { answerOf, MessageWork } from "./work/message-work.ts";
import { Outbox } from "./work/outbox.ts";
import type { ChannelParts } from "./work/parts.ts";
import { Questions } from "./work/questions.ts";
import { SendQueue } from "./work/send-queue.ts";
import {
  checkMessage,
  commandOf,
  type MessageEntry,
  messageKey,
  type StoredMessage,
  valueOf,
} from "./work/stored-message.ts";
import { backoffMs, wait } from "./work/wait.ts";

/** Deletes the records of channels that have expired, at most 1,000 of each kind. Another process may do the same. */
async function sweep(records: Records, now: number): Promise<void> {
  for (const namespace of [namespaces.seen, namespaces.questions, namespaces.codes, namespaces.notified])
    for (const { key, version } of await records.due(namespace, now, 1_000))
      await records.delete({ namespace, key }, version);
}

/** Maximum number of waiting messages in a conversation. Further ones are refused. */
const maxWaiting = 100;

/** What the holder of the lease does. */
interface Shift {
  readonly work: MessageWork;
  readonly queue: SendQueue;
  readonly outbox: Outbox;
  readonly ended: Promise<void>;
}

/** Hosts one channel: it receives, processes and answers the messages of the channel. */
export class ChannelHost implements ChannelPort {
  readonly clock: Clock;
  readonly #parts: ChannelParts;
  readonly #questions: Questions;
  readonly #lease: ChannelLease;
  readonly #closing = new AbortController();
  /** The last call of `receive` in each conversation, so that messages that arrive at once keep their order. */
  readonly #receiving = new Map<string, Promise<unknown>>();
  #shift: Shift | undefined;
  #running: Promise<void> | undefined;

  constructor(parts: ChannelParts) {
    this.#parts = parts;
    this.clock = parts.clock;
    this.#questions = new Questions(parts, (entry) => this.#shift?.work.add(entry));
    this.#lease = new ChannelLease(parts.records, parts.clock, parts.channel.name);
  }

  /** Begins to work. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Stops polling and sending, and resolves when nothing is in progress. Runs continue. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  log(line: string): void {
    this.#parts.log(line);
  }

  async receive(message: IncomingMessage): Promise<Receipt> {
    checkMessage(message);
    const { conversationId, senderId } = message;
    const owner = await this.#parts.senders.ownerOf(senderId);
    if (owner === undefined) return this.#refuse(message);
    const before = this.#receiving.get(conversationId) ?? Promise.resolve();
    const stored = before.then(() => this.#store(message, owner));
    const settled = stored.catch(() => undefined);
    this.#receiving.set(conversationId, settled);
    try {
      return await stored;
    } finally {
      if (this.#receiving.get(conversationId) === settled) this.#receiving.delete(conversationId);
    }
  }

  decide(decision: IncomingDecision): Promise<DecisionReceipt> {
    return this.#questions.decide(decision);
  }

  async outcome(message: MessageName, signal: AbortSignal): Promise<MessageOutcome | undefined> {
    const { store } = this.#parts;
    let changed = Promise.withResolvers<void>();
    const wake = (): void => changed.resolve();
    const remove = store.onChange(wake);
    signal.addEventListener("abort", wake, { once: true });
    try {
      for (;;) {
        changed = Promise.withResolvers<void>();
        const found = await this.#outcome(message);
        if (found === undefined || found.state === "answered") return found;
        if (found.questions.length > 0 || signal.aborted || this.#closing.signal.aborted) return found;
        await changed.promise;
      }
    } finally {
      remove();
      signal.removeEventListener("abort", wake);
    }
  }

  async hasSeen(id: string): Promise<boolean> {
    return (await this.#parts.records.get(this.#onceKey(id))) !== undefined;
  }

  async once(id: string, forMs: number): Promise<boolean> {
    const { records, clock } = this.#parts;
    const draft = { ...this.#onceKey(id), value: true, dueAt: clock.now() + forMs };
    return (await records.put(draft, "absent")).kind === "stored";
  }

  async readCursor(): Promise<JsonValue | undefined> {
    return (await this.#parts.records.get(this.#cursorKey))?.value;
  }

  writeCursor(value: JsonValue): Promise<void> {
    return overwrite(this.#parts.records, this.#cursorKey, value);
  }

  /**
   * Stores a message that is not an answer, such as a notification, and sends it. If the id is already stored,
   * nothing happens.
   */
  async post(message: Omit<OutgoingMessage, "piece" | "pieces">): Promise<void> {
    await Outbox.store(this.#parts, message);
    await this.#shift?.outbox.load();
  }

  #onceKey(id: string): { readonly namespace: string; readonly key: string } {
    return { namespace: namespaces.seen, key: `${this.#parts.channel.name}/once/${shortDigest(id)}` };
  }

  get #cursorKey(): { readonly namespace: string; readonly key: string } {
    return { namespace: namespaces.cursors, key: this.#parts.channel.name };
  }

  async #outcome({ conversationId, messageId, senderId }: MessageName): Promise<MessageOutcome | undefined> {
    const { records, channel, runtime } = this.#parts;
    const key = messageKey(channel.name, conversationId, messageId);
    const seen = await records.get({ namespace: namespaces.seen, key });
    const waiting =
      seen === undefined ? await records.get({ namespace: namespaces.messages, key }) : undefined;
    const message = (seen ?? waiting)?.value as unknown as StoredMessage | undefined;
    if (message?.senderId !== senderId) return undefined;
    const { runId } = message;
    const about = async (hasEnded: boolean): Promise<Pick<MessageOutcome, "runId" | "questions">> =>
      runId === null
        ? { questions: [] }
        : { runId, questions: await this.#questions.of(conversationId, runId, hasEnded) };
    if (seen === undefined && message.state !== "answering")
      return { state: message.state, texts: [], ...(await about(false)) };
    if (runId !== null && (await this.#isContinued(conversationId, runId)))
      return { state: "running", texts: [], ...(await about(false)) };
    const { text, status } = await answerOf(runtime, message);
    return {
      state: "answered",
      texts: text === "" ? [] : (channel.pieces?.(text) ?? [text]),
      ...(await about(true)),
      ...(status !== undefined && { status }),
    };
  }

  /** Whether a run that was already answered continues, because of a top-up in this conversation or elsewhere. */
  async #isContinued(conversationId: string, runId: string): Promise<boolean> {
    const { records, channel, runtime, store } = this.#parts;
    const run = await runtime.find(runId);
    if (run === undefined) return false;
    const { status, endedAt } = await run.summary();
    if (endedAt === null) return true;
    if (!isStoppedAtLimit(status)) return false;
    const messageId = continuationId(runId, await seqAfterEnd(run));
    const key = messageKey(channel.name, conversationId, messageId);
    const accepted = await records.get({ namespace: namespaces.messages, key });
    return accepted !== undefined || hasOrders(store, run.runId);
  }

  /**
   * Sends a pairing code, or drops the message. The code is not stored, so that it is lost if the process dies
   * here.
   */
  async #refuse(message: IncomingMessage): Promise<Receipt> {
    const { channel, log } = this.#parts;
    const { conversationId, messageId } = message;
    const text = await this.#parts.senders.refuse(message);
    if (text === undefined) return { kind: "refused" };
    const deliveryId = shortDigest("pairing", channel.name, conversationId, messageId);
    const notice = { deliveryId, kind: "notice", conversationId, text, piece: 1, pieces: 1 } as const;
    try {
      const outcome = await channel.send({ ...notice, replyTo: messageId }, AbortSignal.timeout(10_000));
      if (outcome.kind !== "sent")
        log(`channel ${channel.name}: a pairing code was not sent: ${outcome.reason}`);
    } catch (error) {
      log(`channel ${channel.name}: a pairing code was not sent: ${Fault.from(error).message}`);
    }
    return { kind: "pairing", text };
  }

  async #store(message: IncomingMessage, owner: Owner): Promise<Receipt> {
    const { records, channel, clock, log } = this.#parts;
    const { messageId, conversationId, senderId, text, attachments = [] } = message;
    const key = messageKey(channel.name, conversationId, messageId);
    if ((await records.get({ namespace: namespaces.seen, key })) !== undefined) return { kind: "duplicate" };
    const prefix = key.slice(0, key.lastIndexOf("/") + 1);
    const page = await records.list({ namespace: namespaces.messages, prefix, limit: maxWaiting });
    if (page.records.some((each) => each.key === key)) return { kind: "duplicate" };
    const command = commandOf(text);
    if (page.records.length >= maxWaiting && command !== "stop") {
      log(`channel ${channel.name}: dropped a message: ${maxWaiting} messages of its conversation wait`);
      return { kind: "refused" };
    }
    const sessionId = await this.#sessionOf(message, owner, command === "new");
    const answers =
      command === null ? ((await this.#questions.textQuestion(conversationId, sessionId)) ?? null) : null;
    const receivedAt = clock.now();
    const stored: StoredMessage = {
      messageId,
      conversationId,
      senderId,
      text,
      attachments,
      order: message.order ?? receivedAt,
      receivedAt,
      sessionId,
      command,
      answers,
      state: "queued",
      runId: null,
      reply: null,
      sent: 0,
    };
    const draft = { namespace: namespaces.messages, key, value: valueOf(stored) };
    const written = await records.put(draft, "absent");
    if (written.kind === "conflict") return { kind: "duplicate" };
    const entry: MessageEntry = { key, version: written.version, message: stored };
    this.#shift?.work.add(entry);
    return { kind: "accepted" };
  }

  /**
   * Returns the session of a sender in a conversation. The command `/new` starts another session; if the same
   * command is received again, it is the same one.
   */
  async #sessionOf(
    { conversationId, senderId, messageId }: IncomingMessage,
    { tenantId, userId }: Owner,
    isNew: boolean,
  ): Promise<string> {
    const { records, channel } = this.#parts;
    const key = {
      namespace: namespaces.sessions,
      key: `${channel.name}/${shortDigest(conversationId)}/${shortDigest(senderId)}`,
    };
    if (isNew) await overwrite(records, key, { since: messageId });
    const stored = (await records.get(key))?.value as { readonly since: string } | undefined;
    return `${channel.name}/${shortDigest(conversationId, tenantId, userId, stored?.since ?? null)}`;
  }

  /** Polls and sends whenever this process holds the channel's lease, until the host is closed. */
  async #run(): Promise<void> {
    const { clock, channel, log } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (await this.#lease.hold()) await this.#holdShift();
        else await wait(clock, renewMs, signal);
      } catch (error) {
        if (signal.aborted) break;
        log(`channel ${channel.name}: ${Fault.from(error).message}`);
        await wait(clock, backoffMs(0), signal);
      }
    }
    try {
      await this.#lease.release();
    } catch (error) {
      log(`channel ${channel.name}: the lease was not released: ${Fault.from(error).message}`);
    }
  }

  /** Polls and sends until the lease is lost or the host is closed. */
  async #holdShift(): Promise<void> {
    const { clock, store } = this.#parts;
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#closing.signal]);
    const shift = this.#newShift(signal);
    this.#shift = shift;
    const stopWatching = store.onChange(({ kind }) => {
      if (kind === "other") this.#reload(shift, signal);
    });
    try {
      await shift.work.load();
      await shift.outbox.load();
      while (!signal.aborted) {
        await wait(clock, renewMs, signal);
        if (signal.aborted || !(await this.#lease.hold())) break;
        await sweep(this.#parts.records, clock.now());
      }
    } finally {
      this.#shift = undefined;
      stopWatching();
      over.abort();
      await shift.ended;
      await shift.work.settled();
      await shift.queue.settled();
    }
  }

  #newShift(signal: AbortSignal): Shift {
    const queue = new SendQueue(this.#parts, signal);
    const work = new MessageWork(this.#parts, this.#questions, queue, signal);
    const outbox = new Outbox(this.#parts, queue);
    return { work, queue, outbox, ended: this.#poll(signal) };
  }

  #isReloading = false;

  /**
   * Reads what other processes have stored. Only one read is in progress at a time; changes during a read cause
   * another one.
   */
  #reload(shift: Shift, signal: AbortSignal): void {
    if (this.#isReloading || signal.aborted) return;
    this.#isReloading = true;
    void this.#look(shift, signal);
  }

  async #look({ work, outbox }: Shift, signal: AbortSignal): Promise<void> {
    await wait(this.#parts.clock, reloadMs, signal);
    this.#isReloading = false;
    if (signal.aborted) return;
    try {
      await work.load();
      await outbox.load();
    } catch (error) {
      this.log(`channel ${this.#parts.channel.name}: ${Fault.from(error).message}`);
    }
  }

  /** Calls the poll loop of the channel again when it fails. */
  async #poll(signal: AbortSignal): Promise<void> {
    const { channel, clock, log } = this.#parts;
    let isStarted = false;
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        if (!isStarted) await channel.start?.(signal);
        isStarted = true;
        if (channel.poll === undefined) return;
        await channel.poll(this, signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        log(`channel ${channel.name}: ${Fault.from(error).message}`);
      }
      if (!signal.aborted) await wait(clock, backoffMs(failures), signal);
    }
  }
}

/** Delay between a change by another process and the read of the records, in milliseconds. */
const reloadMs = 200;
