import { randomInt, timingSafeEqual } from "node:crypto";
import { sha256Hex } from "../../../runtime/index.ts";
import { Fault, type JsonObject, type Records } from "../../../kernel/index.ts";
import { allRecords, namespaces, overwrite, remove } from "../channel-records.ts";
import { shortDigest } from "../../http/short-digest.ts";
import { ownerOf, type Owner } from "./owner.ts";

/** A sender that the owner of the store has admitted. */
export interface Pairing extends Owner {
  readonly channel: string;
  readonly senderId: string;
  readonly senderName: string | null;
  readonly pairedAt: number;
}

/** A sender that was sent a code and waits for the owner. The code itself is not stored. */
export interface PendingPairing {
  readonly channel: string;
  readonly senderId: string;
  readonly senderName: string | null;
  readonly requestedAt: number;
  readonly expiresAt: number;
}

/** A sender that asks to be admitted. */
interface PairingRequest {
  readonly channel: string;
  readonly senderId: string;
  readonly senderName?: string | undefined;
}

/** The pairings of a store. Every process on the store sees the same ones. */
export interface Pairings {
  /**
   * Creates a code for a sender. If 200 senders of the channel wait, the code of the one that has waited longest
   * becomes invalid, so that strangers cannot block others; that sender may ask again. Throws `rate_limited` if the
   * sender has received three codes within the hour.
   */
  request(request: PairingRequest): Promise<{ readonly code: string; readonly expiresAt: number }>;
  /** Admits the sender of a code. Throws `not_found`, and `rate_limited` after too many wrong codes. */
  approve(code: string, owner?: Partial<Owner>): Promise<Pairing>;
  find(channel: string, senderId: string): Promise<Pairing | undefined>;
  /** All pairings, oldest first. */
  list(): Promise<readonly Pairing[]>;
  /** The codes that wait, oldest first. */
  pending(): Promise<readonly PendingPairing[]>;
  /** Removes a pairing. Takes effect with the next message or delivery. Returns whether it existed. */
  revoke(channel: string, senderId: string): Promise<boolean>;
}

interface StoredCode extends PendingPairing {
  /** SHA-256 of the code, in hexadecimal. */
  readonly hash: string;
  /** Number of codes that the sender has received since `requestedAt`. */
  readonly issued: number;
}

/** Letters and digits that people do not confuse with each other. A code of eight has 40 bits. */
const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const codeLength = 8;
const hourMs = 3_600_000;
const maxPending = 200;
const maxPerSender = 3;
const maxWrong = 10;

/** Pairings that are kept in the records of a store. */
export function storedPairings(records: Records, now: () => number = Date.now): Pairings {
  const codes = async (prefix = ""): Promise<readonly StoredCode[]> => {
    const found = await allRecords(records, namespaces.codes, prefix);
    return found
      .filter(({ key }) => key !== attemptsKey)
      .map(({ value }) => value as unknown as StoredCode)
      .filter(({ expiresAt }) => expiresAt > now());
  };
  const makeRoom = async (waiting: readonly StoredCode[]): Promise<void> => {
    const oldest = waiting.toSorted((one, other) => one.requestedAt - other.requestedAt);
    for (const { channel, senderId } of oldest.slice(0, Math.max(0, waiting.length - maxPending + 1)))
      await remove(records, { namespace: namespaces.codes, key: keyOf(channel, senderId) });
  };
  return {
    async request({ channel, senderId, senderName }) {
      const waiting = await codes(`${channel}/`);
      const before = waiting.find((each) => each.senderId === senderId);
      if (before !== undefined && before.issued >= maxPerSender)
        throw new Fault(
          "rate_limited",
          `the sender has received ${maxPerSender} pairing codes within an hour`,
        );
      if (before === undefined) await makeRoom(waiting);
      const code = newCode();
      const expiresAt = now() + hourMs;
      const value: StoredCode = {
        channel,
        senderId,
        senderName: senderName?.slice(0, 100) ?? null,
        requestedAt: before?.requestedAt ?? now(),
        expiresAt: before?.expiresAt ?? expiresAt,
        hash: hashOf(code),
        issued: (before?.issued ?? 0) + 1,
      };
      await overwrite(
        records,
        { namespace: namespaces.codes, key: keyOf(channel, senderId) },
        value as unknown as JsonObject,
        value.expiresAt,
      );
      return { code: `${code.slice(0, 4)}-${code.slice(4)}`, expiresAt: value.expiresAt };
    },
    async approve(code, owner = {}) {
      await countAttempt(records, now());
      const wanted = Buffer.from(hashOf(plain(code)), "hex");
      const found = (await codes()).find(({ hash }) => timingSafeEqual(Buffer.from(hash, "hex"), wanted));
      if (found === undefined)
        throw new Fault(
          "not_found",
          "no pairing code like this waits for approval: it is wrong, used or older than an hour; ask the sender to write again",
        );
      const { channel, senderId, senderName } = found;
      const pairing: Pairing = {
        channel,
        senderId,
        senderName,
        ...ownerOf(channel, senderId, owner),
        pairedAt: now(),
      };
      const key = keyOf(channel, senderId);
      await overwrite(records, { namespace: namespaces.pairings, key }, pairing as unknown as JsonObject);
      await remove(records, { namespace: namespaces.codes, key });
      await remove(records, { namespace: namespaces.codes, key: attemptsKey });
      return pairing;
    },
    async find(channel, senderId) {
      const found = await records.get({ namespace: namespaces.pairings, key: keyOf(channel, senderId) });
      const pairing = found?.value as unknown as Pairing | undefined;
      return pairing?.senderId === senderId ? pairing : undefined;
    },
    async list() {
      const found = await allRecords(records, namespaces.pairings);
      return found
        .map(({ value }) => value as unknown as Pairing)
        .toSorted((one, other) => one.pairedAt - other.pairedAt);
    },
    async pending() {
      const found = await codes();
      return found
        .map(({ hash: _hash, issued: _issued, ...each }) => each)
        .toSorted((one, other) => one.requestedAt - other.requestedAt);
    },
    revoke: (channel, senderId) =>
      remove(records, { namespace: namespaces.pairings, key: keyOf(channel, senderId) }),
  };
}

function keyOf(channel: string, senderId: string): string {
  return `${channel}/${shortDigest(senderId)}`;
}

const attemptsKey = "attempts";

/** Counts an attempt to approve a code, and refuses it if too many codes were wrong within an hour. */
async function countAttempt(records: Records, at: number): Promise<void> {
  const key = { namespace: namespaces.codes, key: attemptsKey };
  for (;;) {
    const current = await records.get(key);
    const before = current?.value as { since: number; count: number } | undefined;
    const isNew = before === undefined || at - before.since >= hourMs;
    if (!isNew && before.count >= maxWrong)
      throw new Fault(
        "rate_limited",
        `${maxWrong} pairing codes were wrong; try again after ${new Date(before.since + hourMs).toISOString()}`,
      );
    const value = isNew ? { since: at, count: 1 } : { since: before.since, count: before.count + 1 };
    const written = await records.put({ ...key, value }, current?.version ?? "absent");
    if (written.kind === "stored") return;
  }
}

function newCode(): string {
  return Array.from({ length: codeLength }, () => alphabet.charAt(randomInt(alphabet.length))).join("");
}

/** Returns a code as it is compared. A person may write it in any case, with or without the dash and spaces. */
function plain(code: string): string {
  return code.toUpperCase().replaceAll(/[\s-]/gu, "");
}

function hashOf(code: string): string {
  return sha256Hex(code);
}
