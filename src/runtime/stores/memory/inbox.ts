import {
  senderTenant,
  lineOf,
  isInScope,
  redeliveryDelayMs,
  type AgentId,
  type Delivery,
  type Inbox,
  type InboxChange,
  type InboxQuery,
  type InboxSettings,
  type Message,
  type NextMail,
  type RunId,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { CommitSource } from "../commit-source.ts";
import type { Tables } from "./tables.ts";

interface Letter {
  readonly message: Message;
  readonly line: string;
  readonly asks: boolean;
  /** Position in the order of arrival, over all inboxes. */
  place: number;
  deliveries: number;
  notBefore: number;
  redelivered: number;
  isTaken: boolean;
  runId: RunId | undefined;
}

interface Box {
  /** Messages that are neither acknowledged nor dead letters, by id, in the order of arrival. */
  readonly here: Map<string, Letter>;
  /**
   * By sender: messages in the order in which they were sent. Messages at the front that ask for a reply are left
   * out.
   */
  readonly lines: Map<string, Letter[]>;
  /** I2: messages that no run holds and that do not wait for an earlier message of their line. */
  readonly heads: Set<Letter>;
  dead: Letter[];
  readonly seen: Set<string>;
}

export class MemoryInbox implements Inbox {
  readonly settings: InboxSettings;
  readonly #boxes = new Map<AgentId, Box>();
  readonly #taken = new Map<RunId, Set<Letter>>();
  readonly #tables: Tables;
  #places = 0;

  constructor(tables: Tables, settings: InboxSettings) {
    this.#tables = tables;
    this.settings = settings;
  }

  async deliver(message: Message): Promise<boolean> {
    return this.#deliver(message);
  }

  async peek(agentId: AgentId, limit = 100): Promise<readonly Delivery[]> {
    return [...this.#box(agentId).here.values()].slice(0, limit).map(deliveryOf);
  }

  async find(agentId: AgentId, messageIds: readonly string[]): Promise<readonly Delivery[]> {
    const { here, dead } = this.#box(agentId);
    const find = (id: string): Letter | undefined =>
      here.get(id) ?? dead.find(({ message }) => message.id === id);
    return messageIds.flatMap((id) => find(id) ?? []).map(deliveryOf);
  }

  async next(agentId: AgentId, query: InboxQuery): Promise<NextMail> {
    const { mode: mail, now, runId, tenantId, limit = 100 } = query;
    const box = this.#box(agentId);
    const isDue = (letter: Letter): boolean => box.heads.has(letter) && letter.notBefore <= now;
    const isOwn = ({ isTaken, runId: by }: Letter): boolean => isTaken && by === runId;
    const before = (letter: Letter): Letter | undefined =>
      letter.isTaken || box.heads.has(letter) ? undefined : box.lines.get(letter.line)?.[0];
    const isNext = (letter: Letter): boolean => {
      const first = before(letter);
      if (first === undefined) return mail === "together" && isDue(letter);
      return (mail === "together" && isDue(first)) || (runId !== undefined && isOwn(first));
    };
    const all = [...box.here.values()];
    let letters: readonly Letter[] = [];
    if (mail === "each" && runId === undefined) letters = [...box.heads].filter(isDue).toSorted(byTime);
    else if (runId !== undefined || !all.some(({ isTaken }) => isTaken)) letters = all.filter(isNext);
    if (tenantId !== undefined) letters = letters.filter(({ message }) => senderTenant(message) === tenantId);
    const later = [...box.heads].map(({ notBefore }) => notBefore).filter((at) => at > now);
    return {
      deliveries: letters.slice(0, limit).map(deliveryOf),
      at: later.length === 0 ? null : later.reduce((one, other) => Math.min(one, other)),
    };
  }

  async ack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    this.#apply({ type: "ack", agentId, messageIds });
    this.#tables.announce({ kind: "message" });
  }

  async nack(agentId: AgentId, messageIds: readonly string[], at?: number): Promise<void> {
    this.#apply({ type: "nack", agentId, messageIds }, undefined, at);
    this.#tables.announce({ kind: "message" });
  }

  async deadLetters(agentId?: AgentId, scope?: TenantScope): Promise<readonly Delivery[]> {
    const boxes = [...this.#boxes].filter(([id]) => agentId === undefined || id === agentId);
    return boxes
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([, { dead }]) => dead.filter((letter) => isSentIn(scope, letter)).map(deliveryOf));
  }

  async redeliver(agentId: AgentId, messageIds?: readonly string[], scope?: TenantScope): Promise<number> {
    const box = this.#box(agentId);
    const again = box.dead.filter(
      (letter) => (messageIds?.includes(letter.message.id) ?? true) && isSentIn(scope, letter),
    );
    box.dead = box.dead.filter((letter) => !again.includes(letter));
    for (const letter of again) {
      letter.deliveries = letter.notBefore = 0;
      letter.redelivered++;
      letter.place = ++this.#places;
      this.#add(box, letter);
    }
    if (again.length > 0) this.#tables.announce({ kind: "message" });
    return again.length;
  }

  async waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]> {
    return agentIds.filter((agentId) => this.#box(agentId).heads.size > 0);
  }

  /** Applies the inbox changes of a commit. The journal calls this. */
  applyNow(changes: readonly InboxChange[], { runId, at }: CommitSource): void {
    for (const change of changes) this.#apply(change, runId, at);
    if (changes.some(({ type }) => type !== "take")) this.#tables.announce({ kind: "message" });
  }

  /** I5: whether no run holds the messages that these changes take. */
  isFreeNow(changes: readonly InboxChange[]): boolean {
    return changes.every((change) => {
      if (change.type !== "take") return true;
      const { here } = this.#box(change.agentId);
      return change.messageIds.every((id) => here.get(id)?.isTaken === false);
    });
  }

  /** I5: frees the messages of a deleted run. */
  freeNow(runId: RunId): void {
    const taken = this.#taken.get(runId);
    if (taken === undefined) return;
    for (const letter of taken) this.#leave(this.#box(letter.message.to), letter);
    this.#tables.announce({ kind: "message" });
  }

  #apply(change: InboxChange, runId?: RunId, at?: number): void {
    if (change.type === "deliver") {
      this.#deliver(change.message);
      return;
    }
    const { type, agentId, messageIds } = change;
    const box = this.#box(agentId);
    if (type === "take") {
      if (runId !== undefined) this.#take(box, messageIds, runId);
      return;
    }
    const touched = [...new Set(messageIds)]
      .flatMap((id) => box.here.get(id) ?? [])
      .filter(({ isTaken, runId: by }) => runId === undefined || (isTaken ? by === runId : type === "ack"))
      .toSorted((one, other) => one.place - other.place);
    for (const letter of touched) {
      this.#leave(box, letter);
      if (type === "ack") this.#remove(box, letter);
      else this.#handBack(box, letter, at);
    }
  }

  #take(box: Box, messageIds: readonly string[], runId: RunId): void {
    for (const id of messageIds) {
      const dead = box.dead.find(({ message, runId: by }) => message.id === id && by === runId);
      const letter = box.here.get(id) ?? dead;
      if (letter === undefined || letter.isTaken) continue;
      if (letter === dead) {
        box.dead = box.dead.filter((each) => each !== dead);
        letter.place = ++this.#places;
        this.#add(box, letter);
      }
      letter.isTaken = true;
      letter.runId = runId;
      const taken = this.#taken.get(runId) ?? new Set();
      this.#taken.set(runId, taken.add(letter));
      box.heads.delete(letter);
    }
  }

  #leave(box: Box, letter: Letter): void {
    if (!letter.isTaken || letter.runId === undefined) return;
    letter.isTaken = false;
    const taken = this.#taken.get(letter.runId);
    taken?.delete(letter);
    if (taken?.size === 0) this.#taken.delete(letter.runId);
    if (box.lines.get(letter.line)?.includes(letter) === true) this.#straighten(box, letter.line);
    else box.heads.add(letter);
  }

  #deliver(message: Message): boolean {
    const box = this.#box(message.to);
    if (box.seen.has(message.id)) return false;
    box.seen.add(message.id);
    this.#add(box, {
      message,
      line: lineOf(message),
      asks: message.replyTo !== undefined,
      place: ++this.#places,
      deliveries: 0,
      notBefore: 0,
      redelivered: 0,
      isTaken: false,
      runId: undefined,
    });
    this.#tables.announce({ kind: "message" });
    return true;
  }

  #handBack(box: Box, letter: Letter, at: number | undefined): void {
    letter.deliveries++;
    letter.notBefore = 0;
    if (letter.deliveries < this.settings.maxDeliveries) {
      if (at !== undefined) letter.notBefore = at + redeliveryDelayMs(letter.deliveries, this.settings);
      return;
    }
    this.#remove(box, letter);
    box.dead.push(letter);
  }

  #add(box: Box, letter: Letter): void {
    box.here.set(letter.message.id, letter);
    const line = box.lines.get(letter.line);
    if (line === undefined) box.lines.set(letter.line, [letter]);
    else line.push(letter);
    this.#straighten(box, letter.line);
  }

  #remove(box: Box, letter: Letter): void {
    box.here.delete(letter.message.id);
    box.heads.delete(letter);
    const line = box.lines.get(letter.line) ?? [];
    const place = line.indexOf(letter);
    if (place >= 0) line.splice(place, 1);
    this.#straighten(box, letter.line);
  }

  /**
   * I2: adds the messages that are now first in their line to `heads`. A message does not wait for an earlier one
   * that asks for a reply.
   */
  #straighten(box: Box, name: string): void {
    const line = box.lines.get(name) ?? [];
    while (line[0]?.asks === true) {
      const asking = line.shift();
      if (asking?.isTaken === false) box.heads.add(asking);
    }
    const [first] = line;
    if (first === undefined) box.lines.delete(name);
    else if (!first.isTaken) box.heads.add(first);
  }

  #box(agentId: AgentId): Box {
    const known = this.#boxes.get(agentId);
    if (known !== undefined) return known;
    const box: Box = { here: new Map(), lines: new Map(), heads: new Set(), dead: [], seen: new Set() };
    this.#boxes.set(agentId, box);
    return box;
  }
}

function byTime(one: Letter, other: Letter): number {
  return one.notBefore - other.notBefore || one.place - other.place;
}

/** S6: whether the sender of the message belongs to the scope. */
function isSentIn(scope: TenantScope | undefined, { message: { sender } }: Letter): boolean {
  return isInScope(sender ?? { tenantId: null, userId: null }, scope);
}

function deliveryOf({ message, deliveries, notBefore, runId, redelivered }: Letter): Delivery {
  return {
    message,
    deliveries,
    ...(notBefore > 0 && { notBefore }),
    ...(runId !== undefined && { runId }),
    ...(redelivered > 0 && { redelivered }),
  };
}
