import { expect, test } from "vitest";
import { assistantMessage, type AssistantMessage } from "../../../src/kernel/index.ts";
import { flattenText } from "../../../src/runtime/model/settle-reply.ts";

test("flattenText() keeps a text that was concatenated from 1,000 pieces as one flat string", () => {
  const before = heapUsed();
  const kept: AssistantMessage[] = [];
  for (let count = 0; count < 300; count++) {
    const message = assistantMessage(concatenated(1_000));
    flattenText(message);
    kept.push(message);
  }
  // As ropes the texts would take about 16 MB.
  expect(heapUsed() - before).toBeLessThan(6 * 2 ** 20);
  expect(kept).toHaveLength(300);
});

function concatenated(pieces: number): string {
  let text = "";
  for (let piece = 0; piece < pieces; piece++) text += `piece ${piece} `;
  return text;
}

function heapUsed(): number {
  if (globalThis.gc === undefined) throw new Error("this test needs --expose-gc");
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
