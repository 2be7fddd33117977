import { expect, test } from "vitest";
import {
  canonicalJson,
  contentThreshold,
  isLongText,
  longTextHash,
  toolMessage,
  Transcript,
} from "../../../src/kernel/index.ts";
import { digestText } from "../../../src/kernel/base/json.ts";
import { sha256 } from "../../../src/runtime/process/sha256.ts";

const long = "x".repeat(contentThreshold);

test("isLongText() is true from the threshold on, unless UTF-8 or SQLite cannot hold the text", () => {
  expect([long, `${long}é`].every(isLongText)).toBe(true);
  expect([long.slice(1), `${long}\ud800`, `${long}\0`].some(isLongText)).toBe(false);
});

test("a long text in a frozen object is hashed once for each hash function", () => {
  let calls = 0;
  const hash = (content: string | Uint8Array): string => {
    calls++;
    return sha256(content);
  };
  const holder = Object.freeze({ text: long, other: `${long}!` });
  for (let round = 0; round < 3; round++) {
    expect(longTextHash(holder, "text", holder.text, hash)).toBe(sha256(long));
    expect(longTextHash(holder, "other", holder.other, hash)).toBe(sha256(`${long}!`));
  }
  expect(calls).toBe(2);
  expect(longTextHash(holder, "text", long, (content) => `another ${content.length}`)).toBe(
    `another ${long.length}`,
  );
});

test("a long text in an object that may change is hashed each time", () => {
  const holder = { text: long };
  expect(longTextHash(holder, "text", holder.text, sha256)).toBe(sha256(long));
  holder.text = `${long}!`;
  expect(longTextHash(holder, "text", holder.text, sha256)).toBe(sha256(`${long}!`));
});

test("J4: the text from which a digest is made has the hashes of long texts and is otherwise canonical JSON", () => {
  const value = { b: [long, "short"], a: { text: long }, c: 1 };
  const hash = sha256(long);
  expect(digestText(value, sha256)).toBe(`{"a":{"text":#${hash}},"b":[#${hash},"short"],"c":1}`);
  expect(digestText({ b: 1, a: "x" }, sha256)).toBe(canonicalJson({ b: 1, a: "x" }));
});

test("J4: the digest of a transcript differs if a long text differs in one character", () => {
  const digestOf = (text: string): string => {
    const part = { type: "tool_result", callId: "c", toolName: "t", isError: false } as const;
    return Transcript.of([toolMessage([{ ...part, output: { type: "text", text } }])]).digest(sha256);
  };
  expect(digestOf(`${long}a`)).toBe(digestOf(`${long}a`));
  expect(digestOf(`${long}a`)).not.toBe(digestOf(`${long}b`));
  expect(digestOf(`#${sha256(long)}`)).not.toBe(digestOf(long));
});
