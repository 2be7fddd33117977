import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assistantMessage,
  type ChatMessage,
  type Hash,
  isJson,
  type JsonValue,
  systemMessage,
  toolMessage,
  Transcript,
  userMessage,
} from "../../../src/kernel/index.ts";
import { propertyRuns } from "../../effort.ts";
import { secondKernel } from "../second-kernel.ts";

const sha256: Hash = (text) => createHash("sha256").update(text).digest("hex");

/** Creates a hash that counts its calls and the characters that it hashes. Its digests have a fixed length. */
function countingHash() {
  const count = { calls: 0, characters: 0 };
  const hash: Hash = (text) => {
    count.calls += 1;
    count.characters += text.length;
    return sha256(text);
  };
  return { count, hash };
}

const text = fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 2 });
const input = fc
  .jsonValue({ maxDepth: 1, stringUnit: fc.constantFrom("a", "b") })
  .map((value) => value as JsonValue)
  .filter(isJson);
const message: fc.Arbitrary<ChatMessage> = fc.oneof(
  text.map(systemMessage),
  text.map(userMessage),
  text.map(assistantMessage),
  input.map((value) =>
    assistantMessage([{ type: "tool_call", callId: "c", toolName: "search", input: value }]),
  ),
  fc.tuple(text, fc.boolean()).map(([shown, isError]) =>
    toolMessage([
      {
        type: "tool_result",
        callId: "c",
        toolName: "search",
        output: { type: "text", text: shown },
        isError,
      },
    ]),
  ),
);
const messages = fc.array(message, { maxLength: 4 });

function numbered(count: number): readonly ChatMessage[] {
  return Array.from({ length: count }, (_, index) => userMessage(`message ${index}`));
}

describe("Transcript", () => {
  test("Transcript returns its messages in order as iterator, array and JSON", () => {
    fc.assert(
      fc.property(messages, messages, (first, second) => {
        const transcript = Transcript.of(first).append(...second);
        const all = [...first, ...second];
        expect(transcript).toHaveLength(all.length);
        expect([...transcript]).toEqual(all);
        expect(transcript.slice()).toEqual(all);
        expect(JSON.parse(JSON.stringify(transcript))).toEqual(all);
      }),
    );
  });

  test("at() and slice() of Transcript accept the same positions as an array, negative ones included", () => {
    fc.assert(
      fc.property(messages, fc.integer({ min: -6, max: 6 }), (all, place) => {
        const older = Transcript.of(all);
        older.append(userMessage("only in the newer transcript"));
        expect(older.at(place)).toBe(all.at(place));
        expect(older.slice(place)).toEqual(all.slice(place));
      }),
    );
  });

  test("Transcript does not change when its source array or a returned array changes", () => {
    const source = [userMessage("one")];
    const transcript = Transcript.of(source);
    source.push(userMessage("two"));
    (transcript.slice() as ChatMessage[]).push(userMessage("three"));
    (transcript.toJSON() as ChatMessage[]).length = 0;
    expect([...transcript]).toEqual([userMessage("one")]);
  });

  test("Transcript is frozen: an assignment throws a TypeError", () => {
    const transcript = Transcript.of(numbered(2));
    expect(() => Object.assign(transcript, { length: 1 })).toThrow(TypeError);
    expect(() => Object.assign(transcript, { extra: 1 })).toThrow(TypeError);
  });

  test("Transcript.of() accepts 300,000 messages at once", () => {
    expect(Transcript.of(numbered(300_000))).toHaveLength(300_000);
  });
});

describe("Transcript.append()", () => {
  test("Transcript.append() returns a new transcript and does not change the old one", () => {
    fc.assert(
      fc.property(messages, fc.array(messages, { maxLength: 6 }), (first, rest) => {
        const versions = [{ transcript: Transcript.of(first), held: first }];
        for (const more of rest) {
          const { transcript, held } = versions.at(-1) ?? { transcript: Transcript.empty, held: [] };
          versions.push({ transcript: transcript.append(...more), held: [...held, ...more] });
        }
        for (const { transcript, held } of versions) expect([...transcript]).toEqual(held);
      }),
    );
  });

  test("Transcript.append() returns the same transcript when called without messages", () => {
    const transcript = Transcript.of(numbered(2));
    expect(transcript.append()).toBe(transcript);
  });

  test("Transcript.append() does not change Transcript.empty", () => {
    const [one, other] = [
      Transcript.empty.append(userMessage("a")),
      Transcript.empty.append(userMessage("b")),
    ];
    expect(Transcript.empty).toHaveLength(0);
    expect([[...one], [...other]]).toEqual([[userMessage("a")], [userMessage("b")]]);
  });

  test("Transcript.append() lets messages that were appended to Transcript.empty be garbage-collected", async () => {
    const { Transcript: Fresh } = await secondKernel();
    expect(Fresh).not.toBe(Transcript);
    const dropped = appendAndDrop(Fresh.empty);
    await setImmediate();
    collectGarbage();
    expect(dropped.deref()).toBeUndefined();

    function appendAndDrop(empty: Transcript): WeakRef<ChatMessage> {
      const only = userMessage("dropped");
      empty.append(only);
      return new WeakRef(only);
    }
  });

  test("Transcript.append() keeps the messages and digests of different branches independent of each other", () => {
    const order = fc.tuple(fc.nat(), messages, fc.boolean());
    fc.assert(
      fc.property(messages, fc.array(order, { maxLength: 20 }), (first, orders) => {
        const branches: [{ transcript: Transcript; held: readonly ChatMessage[] }] = [
          { transcript: Transcript.of(first), held: first },
        ];
        for (const [pick, more, digestFirst] of orders) {
          const { transcript, held } = branches[pick % branches.length] ?? branches[0];
          if (digestFirst) transcript.digest(sha256);
          branches.push({ transcript: transcript.append(...more), held: [...held, ...more] });
        }
        for (const { transcript, held } of branches) {
          expect([...transcript]).toEqual(held);
          expect(transcript.digest(sha256)).toBe(Transcript.of(held).digest(sha256));
        }
      }),
    );
  });
});

describe("J4: Transcript.digest()", () => {
  test("J4: the digest of two transcripts is equal if and only if their messages are equal", () => {
    fc.assert(
      fc.property(messages, messages, (one, other) => {
        const same = Transcript.of(one).digest(sha256) === Transcript.of(other).digest(sha256);
        expect(same).toBe(isDeepStrictEqual(one, other));
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });

  test("the digest of a transcript does not depend on how messages were appended, on the order of keys or on a JSON round trip", () => {
    fc.assert(
      fc.property(messages, fc.nat(4), (all, cut) => {
        const digest = Transcript.of(all).digest(sha256);
        expect(
          Transcript.of(all.slice(0, cut))
            .append(...all.slice(cut))
            .digest(sha256),
        ).toBe(digest);
        const stored = (JSON.parse(JSON.stringify(all)) as ChatMessage[]).map(backwards);
        expect(Transcript.of(stored).digest(sha256)).toBe(digest);
      }),
    );
  });

  test("the digest of a transcript changes with every appended message and with an edit of the first message", () => {
    const long = numbered(50);
    const versions = long.map((_message, index) => Transcript.of(long.slice(0, index)).digest(sha256));
    expect(new Set(versions).size).toBe(50);
    const edited = [userMessage("message 0, edited"), ...long.slice(1)];
    expect(Transcript.of(edited).digest(sha256)).not.toBe(Transcript.of(long).digest(sha256));
  });

  test("J4: Transcript.digest() differs between one message with a line break and two messages", () => {
    const one = Transcript.of([userMessage("a\nb")]).digest(sha256);
    const two = Transcript.of([userMessage("a"), userMessage("b")]).digest(sha256);
    expect(one).not.toBe(two);
  });

  test("the digest of a transcript uses the hash function with which it is called, also after a call with another one", () => {
    const transcript = Transcript.of(numbered(3));
    const other: Hash = (hashed) => `other:${sha256(hashed)}`;
    const fresh = Transcript.of(numbered(3)).digest(other);
    transcript.digest(sha256);
    expect(transcript.digest(other)).toBe(fresh);
  });
});

describe("J4: the cost of Transcript.digest()", () => {
  test("J4: Transcript.digest() hashes each message once, on the first call, and nothing on later calls", () => {
    const { count, hash } = countingHash();
    const transcript = Transcript.of(numbered(10));
    expect(count.calls).toBe(0);
    transcript.digest(hash);
    transcript.digest(hash);
    expect(count.calls).toBe(10);
    const longer = transcript.append(...numbered(3));
    longer.digest(hash);
    expect(count.calls).toBe(13);
    transcript.digest(hash);
    expect(count.calls).toBe(13);
  });

  test("J4: Transcript.digest() hashes a message and its tool results in one call, and both digests stay correct on branches", () => {
    const call = assistantMessage([{ type: "tool_call", callId: "c", toolName: "search", input: 1 }]);
    const output = { type: "text", text: "found" } as const;
    const result = toolMessage([
      { type: "tool_result", callId: "c", toolName: "search", output, isError: false },
    ]);
    const { count, hash } = countingHash();
    const asked = Transcript.of([userMessage("go")]);
    const called = asked.append(call);
    const answered = called.append(result);
    const digest = answered.digest(hash);
    expect(count.calls).toBe(2);
    expect(called.digest(hash)).toBe(Transcript.of([userMessage("go"), call]).digest(hash));
    const [again, more] = [called.append(result), called.append(userMessage("stop"))];
    expect(again.digest(hash)).toBe(digest);
    expect(more.digest(hash)).toBe(Transcript.of([...more]).digest(hash));
  });

  test("J4: Transcript.digest() hashes only the new messages of a branch if the transcript below has a digest", () => {
    const { count, hash } = countingHash();
    const trunk = Transcript.of(numbered(100));
    trunk.digest(hash);
    const branches = [trunk.append(userMessage("left")), trunk.append(userMessage("right"))];
    expect(new Set(branches.map((branch) => branch.digest(hash))).size).toBe(2);
    expect(count.calls).toBe(102);
  });

  test("20,000 messages with a digest after each take one hash of constant size per message", () => {
    const { count, hash } = countingHash();
    let transcript = Transcript.empty;
    for (const each of numbered(20_000)) {
      transcript = transcript.append(each);
      transcript.digest(hash);
    }
    expect(transcript).toHaveLength(20_000);
    expect(count.calls).toBe(20_000);
    expect(count.characters).toBeLessThan(20_000 * 200);
  });

  test("the digest of a transcript reads each message once, independent of the length of the conversation", () => {
    const { hash } = countingHash();
    const reads = { count: 0 };
    const watched = new Proxy(userMessage("watched"), {
      ownKeys(target) {
        reads.count += 1;
        return Reflect.ownKeys(target);
      },
    });
    let transcript = Transcript.empty;
    for (let turn = 0; turn < 1000; turn++) {
      transcript = transcript.append(watched);
      transcript.digest(hash);
    }
    expect(reads.count).toBe(1000);
  });

  test("10,000 retained versions of a transcript share their messages in memory", () => {
    const all = numbered(10_000);
    const before = heapUsed();
    const versions: Transcript[] = [Transcript.empty];
    for (const each of all) versions.push((versions.at(-1) ?? Transcript.empty).append(each));
    // A copy of the messages in each version would take about 400 MB.
    expect(heapUsed() - before).toBeLessThan(16 * 2 ** 20);
    expect(versions.at(-1)).toHaveLength(10_000);
  });
});

describe("J4: compaction with Transcript.of()", () => {
  test("J4: the digest of a compacted transcript starts a new chain that hashes only the kept messages", () => {
    const { count, hash } = countingHash();
    const long = Transcript.of(numbered(1000));
    long.digest(hash);
    const summary = systemMessage("what happened so far");
    const compacted = Transcript.of([summary, ...long.slice(-3)]);
    const before = count.calls;
    const digest = compacted.digest(hash);
    expect(count.calls - before).toBe(4);
    expect(digest).toBe(Transcript.of([summary, ...numbered(1000).slice(-3)]).digest(sha256));
    expect(compacted.append(userMessage("next")).digest(hash)).not.toBe(digest);
    expect(count.calls - before).toBe(5);
    expect(long).toHaveLength(1000);
  });
});

/** Returns a copy of a value with the keys of every object in reverse order. */
function backwards<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(backwards) as Value;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toReversed();
  return Object.fromEntries(entries.map(([key, member]) => [key, backwards(member)])) as Value;
}

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error("this test needs --expose-gc");
  globalThis.gc();
  globalThis.gc();
}
