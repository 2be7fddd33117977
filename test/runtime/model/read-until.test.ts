import { describe, expect, it } from "vitest";
import { readUntil } from "../../../src/runtime/model/read-until.ts";

function source(trouble: { readonly reading?: Error; readonly leaving?: Error } = {}) {
  const seen: string[] = [];
  async function* items(): AsyncIterable<number> {
    try {
      yield 1;
      yield 2;
      failBy(trouble.reading);
      yield 3;
      seen.push("read to the end");
    } finally {
      seen.push("left");
      failBy(trouble.leaving);
    }
  }
  return { items: items(), seen };
}

function failBy(error: Error | undefined): void {
  if (error !== undefined) throw error;
}

describe("reading until something is made of an item", () => {
  it("leaves with it, once the source has let go", async () => {
    const { items, seen } = source();
    expect(await readUntil(items, (item) => (item === 2 ? "two" : undefined))).toBe("two");
    expect(seen).toEqual(["left"]);
  });

  it("comes to nothing when there is nothing more", async () => {
    const { items, seen } = source();
    const sum: number[] = [];
    const read = await readUntil(items, (item) => {
      sum.push(item);
      return undefined;
    });
    expect([read, sum, seen]).toEqual([undefined, [1, 2, 3], ["read to the end", "left"]]);
  });

  it("fails as the source does, in reading or in letting go", async () => {
    const reading = source({ reading: new Error("cut") });
    await expect(readUntil(reading.items, () => undefined)).rejects.toThrow("cut");
    const leaving = source({ leaving: new Error("stuck") });
    await expect(readUntil(leaving.items, (item) => item)).rejects.toThrow("stuck");
  });

  it("fails as its reader does, whatever comes of leaving", async () => {
    const { items, seen } = source({ leaving: new Error("stuck") });
    const broken = readUntil(items, () => {
      throw new Error("no filter");
    });
    await expect(broken).rejects.toThrow("no filter");
    expect(seen).toEqual(["left"]);
  });
});
