import {
  Fault,
  type ApprovalDecision,
  type JsonObject,
  type RunHandle,
  type StoredRecord,
} from "../../../kernel/index.ts";
import { isSameOwner, type Owner } from "../access/owner.ts";
import { amountWords } from "../../view/top-up-offer.ts";
import { choicesOf, questionForm, topUpForm, type QuestionForm } from "../answer-text.ts";
import type { DecisionReceipt, IncomingDecision, OpenQuestion } from "../channel.ts";
import { allRecords, namespaces } from "../channel-records.ts";
import { shortDigest } from "../../http/short-digest.ts";
import { continuationId, offeredTopUp, type OfferedTopUp } from "./continued-run.ts";
import { viewOf, type ChannelParts } from "./parts.ts";
import type { SendQueue } from "./send-queue.ts";
import { messageKey, valueOf, type MessageEntry, type StoredMessage } from "./stored-message.ts";

/** A question as it is stored. */
interface StoredQuestion extends QuestionForm, Owner {
  readonly runId: string;
  /** Empty for the offer of a top-up. */
  readonly approvalId: string;
  /** The offer of a top-up, with the message that the run answers. Absent for a question of a run. */
  readonly offer?: { readonly topUp: OfferedTopUp; readonly messageId: string };
  readonly conversationId: string;
  readonly sessionId: string;
  readonly senderId: string;
  readonly askedAt: number;
  /** `ref` of the sent message. `null` until it is sent. */
  readonly ref: string | null;
  readonly isSent: boolean;
  /** How the question ended. `null` while it is open. A decided question is kept for a day, for late answers. */
  readonly decided: string | null;
}

const dayMs = 86_400_000;
/** How long a top-up is offered. */
const offerMs = 7 * dayMs;

/** A run whose questions are asked, and the conversation for them. */
export interface AskedRun {
  readonly run: RunHandle;
  readonly owner: Owner;
  readonly conversationId: string;
  readonly sessionId: string;
  /** The sender of the message that the run answers. */
  readonly senderId: string;
}

/** The questions that runs ask in the conversations of a channel. All processes on the store share them. */
export class Questions {
  readonly #parts: ChannelParts;
  /** Keys of the questions that this process is sending. */
  readonly #sending = new Set<string>();
  readonly #continue: (entry: MessageEntry) => void;

  /** `onContinue` is called with the stored message of a run that a person has continued. */
  constructor(parts: ChannelParts, onContinue: (entry: MessageEntry) => void) {
    this.#parts = parts;
    this.#continue = onContinue;
  }

  /**
   * Sends the open questions of a run that were not sent yet. The key follows from run and question, so that a question
   * is sent again only if the process died while it was sent.
   */
  async ask(asked: AskedRun, queue: SendQueue): Promise<void> {
    const { clock, records } = this.#parts;
    const { run, owner, conversationId, sessionId, senderId } = asked;
    for (const approval of await run.pendingApprovals()) {
      const form = questionForm(approval);
      if (form === undefined) continue;
      const { approvalId } = approval;
      const key = this.#keyOf(conversationId, shortDigest(run.runId, approvalId));
      const value: StoredQuestion = {
        ...form,
        ...owner,
        runId: run.runId,
        approvalId,
        conversationId,
        sessionId,
        senderId,
        askedAt: clock.now(),
        ref: null,
        isSent: false,
        decided: null,
      };
      await records.put(
        { namespace: namespaces.questions, key, value: value as unknown as JsonObject },
        "absent",
      );
      this.#send(key, conversationId, queue);
    }
  }

  /**
   * B8: stores the offer of a top-up for a run that stopped at a limit, if its person may add to it. `sendOffers` sends it
   * after the answer.
   */
  async offer(asked: AskedRun, messageId: string): Promise<void> {
    const { clock, records } = this.#parts;
    const { run, owner, conversationId, sessionId, senderId } = asked;
    const topUp = await offeredTopUp(run);
    if (topUp === undefined) return;
    const askedAt = clock.now();
    const value: StoredQuestion = {
      ...topUpForm(run.runId, topUp.name, topUp.amount),
      ...owner,
      runId: run.runId,
      approvalId: "",
      offer: { topUp, messageId },
      conversationId,
      sessionId,
      senderId,
      askedAt,
      ref: null,
      isSent: false,
      decided: null,
    };
    const key = this.#keyOf(conversationId, shortDigest(run.runId, "top-up", String(topUp.fromSeq)));
    await records.put(
      {
        namespace: namespaces.questions,
        key,
        value: value as unknown as JsonObject,
        dueAt: askedAt + offerMs,
      },
      "absent",
    );
  }

  /**
   * Sends the offers of a run that were not sent yet. Call it in the queue of the conversation. Returns `false` if the host
   * stops first.
   */
  async sendOffers(conversationId: string, runId: string, queue: SendQueue): Promise<boolean> {
    for (const { key, question } of await this.#open(conversationId))
      if (question.runId === runId && question.offer !== undefined && !(await this.#deliver(key, queue)))
        return false;
    return true;
  }

  #send(key: string, conversationId: string, queue: SendQueue): void {
    if (this.#sending.has(key)) return;
    this.#sending.add(key);
    void queue
      .enqueue(conversationId, async () => void (await this.#deliver(key, queue)))
      .finally(() => this.#sending.delete(key));
  }

  /** Sends a question or offer. Returns `false` if the host stops before it is sent. */
  async #deliver(key: string, queue: SendQueue): Promise<boolean> {
    const { records, channel } = this.#parts;
    const found = await this.#get(key);
    if (found === undefined || found.question.isSent || found.question.decided !== null) return true;
    const { question } = found;
    const { text, conversationId, runId, askedAt, senderId } = question;
    // N3: a sender whose pairing was revoked is sent nothing more.
    if ((await this.#parts.senders.ownerOf(senderId)) === undefined) return true;
    const texts = channel.pieces?.(text) ?? [text];
    let ref: string | undefined;
    for (const [index, each] of texts.entries()) {
      const isLast = index === texts.length - 1;
      const outcome = await queue.send(
        {
          deliveryId: `${tokenOf(key)}-${index + 1}`,
          kind: "question",
          conversationId,
          text: each,
          runId,
          piece: index + 1,
          pieces: texts.length,
          ...(isLast && { choices: choicesOf(question, tokenOf(key)) }),
        },
        askedAt,
      );
      if (outcome === undefined) return false;
      if (outcome.kind === "failed") return true;
      if (isLast) ({ ref } = outcome);
    }
    const value = { ...question, isSent: true, ref: ref ?? null } as unknown as JsonObject;
    const dueAt = question.offer && askedAt + offerMs;
    const written = await records.put(
      { namespace: namespaces.questions, key, value, ...(dueAt !== undefined && { dueAt }) },
      found.record.version,
    );
    // The question was decided while it was sent.
    if (written.kind === "conflict" && ref !== undefined) {
      const now = await this.#get(key);
      await this.#show(question, ref, now?.question.decided ?? "answered elsewhere");
    }
    return true;
  }

  /** N4: answers a question in the name of a sender. */
  async decide({ conversationId, senderId, data }: IncomingDecision): Promise<DecisionReceipt> {
    const [, code = "", token = ""] = /^([ad]|\d{1,2}):([\w-]{22})$/u.exec(data) ?? [];
    const key = this.#keyOf(conversationId, token);
    const [found, sender] = await Promise.all([
      token === "" ? undefined : this.#get(key),
      this.#parts.senders.ownerOf(senderId),
    ]);
    if (sender === undefined) return refused;
    if (found === undefined) return unknown;
    const { question } = found;
    if (!isSameOwner(question, sender)) return refused;
    if (question.decided !== null) return late(question.decided);
    const decision = decisionOf(question, code, sender.userId);
    if (decision === undefined) return unknown;
    if (question.offer !== undefined) return this.#accept(key, question, question.offer, sender.userId);
    return this.#answer(key, question, decision);
  }

  /** Answers the oldest question of a session that takes a text. Returns whether there was one. */
  async answerText(token: string, conversationId: string, text: string): Promise<boolean> {
    const key = this.#keyOf(conversationId, token);
    const found = await this.#get(key);
    if (found === undefined || found.question.decided !== null) return false;
    const decision = { decision: "approved", input: text, by: found.question.userId } as const;
    const { kind } = await this.#answer(key, found.question, decision);
    return kind === "accepted";
  }

  async #answer(key: string, question: StoredQuestion, decision: ApprovalDecision): Promise<DecisionReceipt> {
    const { runId, approvalId, userId } = question;
    const run = await viewOf(this.#parts.runtime, question).find(runId);
    if (run === undefined) return unknown;
    try {
      await run.as(userId).approve(approvalId, decision);
    } catch (error) {
      if (!Fault.is(error)) throw error;
      if (error.code === "not_found") {
        await this.#close(key, "the run has ended");
        return unknown;
      }
      // B8: the question stays open for a person who may add more.
      if (error.code === "permission_denied")
        return { kind: "refused", text: "Only an admin of the server can add it." };
      if (error.code !== "already_exists") throw error;
      const first = wordsOf(error.details?.["decision"], error.details?.["by"]);
      await this.#close(key, first);
      return late(first);
    }
    const word = wordOf(decision.decision);
    await this.#close(key, `${word} by ${userId}`);
    return { kind: "accepted", text: `${word.charAt(0).toUpperCase()}${word.slice(1)}.` };
  }

  /**
   * Stores a message that continues the run, then closes the offer. The message is stored only once, so that a
   * second press of the button changes nothing. The process that holds the channel's lease adds the amount. If the
   * process crashes in between, only the second write is repeated.
   */
  async #accept(
    key: string,
    { runId, conversationId, senderId, sessionId }: StoredQuestion,
    offer: NonNullable<StoredQuestion["offer"]>,
    by: string,
  ): Promise<DecisionReceipt> {
    const { records, channel, clock } = this.#parts;
    const { topUp } = offer;
    const messageId = continuationId(runId, topUp.fromSeq);
    const receivedAt = clock.now();
    const message: StoredMessage = {
      messageId,
      conversationId,
      senderId,
      text: "",
      attachments: [],
      order: receivedAt,
      receivedAt,
      sessionId,
      command: null,
      answers: null,
      state: "queued",
      runId,
      continues: offer,
      reply: null,
      sent: 0,
    };
    const place = messageKey(channel.name, conversationId, messageId);
    const written = await records.put(
      { namespace: namespaces.messages, key: place, value: valueOf(message) },
      "absent",
    );
    const decision = `${amountWords(topUp.name, topUp.amount)} added by ${by}`;
    await this.#close(key, decision);
    if (written.kind === "conflict") return late(decision);
    this.#continue({ key: place, version: written.version, message });
    return { kind: "accepted", text: "The run continues." };
  }

  /** Closes a question that was decided, in this channel or elsewhere. */
  async closeDecided(
    { run, conversationId }: AskedRun,
    approvalId: string,
    decision: ApprovalDecision,
  ): Promise<void> {
    const key = this.#keyOf(conversationId, shortDigest(run.runId, approvalId));
    await this.#close(key, wordsOf(decision.decision, decision.by));
  }

  /** Closes all questions of a run that has ended. */
  async closeAll({ run, conversationId }: AskedRun): Promise<void> {
    for (const { key, question } of await this.#open(conversationId))
      if (question.runId === run.runId) await this.#close(key, "the run has ended");
  }

  /**
   * Returns the open questions of a run that has not ended, or the open offers of a top-up for a run that has
   * ended.
   */
  async of(conversationId: string, runId: string, hasEnded: boolean): Promise<readonly OpenQuestion[]> {
    const open = await this.#open(conversationId);
    return open
      .filter(({ question }) => question.runId === runId && (question.offer !== undefined) === hasEnded)
      .map(({ key, question }) => ({ text: question.text, choices: choicesOf(question, tokenOf(key)) }));
  }

  /** Returns the token of the session's oldest question that accepts a text as answer. */
  async textQuestion(conversationId: string, sessionId: string): Promise<string | undefined> {
    const open = await this.#open(conversationId);
    const [oldest] = open
      .filter(({ question }) => question.sessionId === sessionId && question.takesText)
      .toSorted((one, other) => one.question.askedAt - other.question.askedAt);
    return oldest && tokenOf(oldest.key);
  }

  async #open(
    conversationId: string,
  ): Promise<readonly { readonly key: string; readonly question: StoredQuestion }[]> {
    const found = await allRecords(
      this.#parts.records,
      namespaces.questions,
      this.#keyOf(conversationId, ""),
    );
    return found
      .map(({ key, value }) => ({ key, question: value as unknown as StoredQuestion }))
      .filter(({ question }) => question.decided === null);
  }

  async #close(key: string, decision: string): Promise<void> {
    const { records, clock } = this.#parts;
    for (;;) {
      const found = await this.#get(key);
      if (found === undefined || found.question.decided !== null) return;
      const { question, record } = found;
      const value = { ...question, decided: decision } as unknown as JsonObject;
      const draft = { namespace: namespaces.questions, key, value, dueAt: clock.now() + dayMs };
      const written = await records.put(draft, record.version);
      if (written.kind === "conflict") continue;
      if (question.ref !== null) await this.#show(question, question.ref, decision);
      return;
    }
  }

  /** Shows the decision in the conversation. The decision is also valid if that fails. */
  async #show({ conversationId, text }: StoredQuestion, ref: string, decision: string): Promise<void> {
    const { channel, log } = this.#parts;
    try {
      await channel.closeQuestion?.({ conversationId, ref, text, decision }, AbortSignal.timeout(10_000));
    } catch (error) {
      log(`channel ${channel.name}: the buttons of a question stay: ${Fault.from(error).message}`);
    }
  }

  async #get(
    key: string,
  ): Promise<{ readonly record: StoredRecord; readonly question: StoredQuestion } | undefined> {
    const record = await this.#parts.records.get({ namespace: namespaces.questions, key });
    return record && { record, question: record.value as unknown as StoredQuestion };
  }

  #keyOf(conversationId: string, token: string): string {
    return `${this.#parts.channel.name}/${shortDigest(conversationId)}/${token}`;
  }
}

const refused: DecisionReceipt = { kind: "refused", text: "You may not answer this question." };
const unknown: DecisionReceipt = { kind: "unknown", text: "This question is no longer open." };

function late(first: string): DecisionReceipt {
  const text =
    first === withdrawn ? `This question was ${withdrawn}.` : `This was already answered: ${first}.`;
  return { kind: "late", text };
}

function tokenOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** Returns the decision that belongs to a choice, or `undefined` if the question does not offer the choice. */
function decisionOf(
  { choices, answers }: StoredQuestion,
  code: string,
  by: string,
): ApprovalDecision | undefined {
  if (!choices.some((each) => each.code === code)) return undefined;
  if (code === "a") return { decision: "approved", by };
  if (code === "d") return { decision: "denied", reason: "by the person", by };
  const input = answers[Number(code)];
  return input === undefined ? undefined : { decision: "approved", input, by };
}

function wordOf(decision: unknown): string {
  return decision === "approved" ? "approved" : decision === "skipped" ? "skipped" : "denied";
}

/**
 * Text for a question that the runtime closed without an answer, for example because the attempt that asked has
 * ended.
 */
const withdrawn = "withdrawn, because nothing waits for its answer any more";

function wordsOf(decision: unknown, by: unknown): string {
  return by === "runtime" ? withdrawn : `${wordOf(decision)} by ${nameOf(by)}`;
}

function nameOf(by: unknown): string {
  return typeof by === "string" ? by : "another person";
}
