import { describe, expect, it } from "vitest";
import { readUntil } from "../../../src/runtime/model/read-until.ts";

function source(errors: { readonly reading?: Error; readonly closing?: Error } = {}) {
  const log: string[] = [];
  async function* items(): AsyncIterable<number> {
    try {
      yield 1;
      yield 2;
      throwIfDefined(errors.reading);
      yield 3;
      log.push("read to the end");
    } finally {
      log.push("closed");
      throwIfDefined(errors.closing);
    }
  }
  return { items: items(), log };
}

function throwIfDefined(error: Error | undefined): void {
  if (error !== undefined) throw error;
}

describe("readUntil()", () => {
  it("resolves to the first value that take() returns, after the source is closed", async () => {
    const { items, log } = source();
    expect(await readUntil(items, (item) => (item === 2 ? "two" : undefined))).toBe("two");
    expect(log).toEqual(["closed"]);
  });

  it("resolves to undefined after the last item", async () => {
    const { items, log } = source();
    const taken: number[] = [];
    const read = await readUntil(items, (item) => {
      taken.push(item);
      return undefined;
    });
    expect([read, taken, log]).toEqual([undefined, [1, 2, 3], ["read to the end", "closed"]]);
  });

  it("rejects with the error of the source, in reading or in closing", async () => {
    const reading = source({ reading: new Error("cut") });
    await expect(readUntil(reading.items, () => undefined)).rejects.toThrow("cut");
    const closing = source({ closing: new Error("stuck") });
    await expect(readUntil(closing.items, (item) => item)).rejects.toThrow("stuck");
  });

  it("rejects with the error of take(), even if closing the source fails too", async () => {
    const { items, log } = source({ closing: new Error("stuck") });
    const broken = readUntil(items, () => {
      throw new Error("no filter");
    });
    await expect(broken).rejects.toThrow("no filter");
    expect(log).toEqual(["closed"]);
  });
});
