import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { supersede } from "../../../src/capabilities/memory/fact-timeline.ts";
import type { Fact, Memory } from "../../../src/kernel/index.ts";
import { openMemory } from "../../../src/assembly/memory.ts";
import { FakeClock, sequentialIds } from "../../../src/testing/index.ts";
import { memoryContract } from "../../../src/testing/contracts/index.ts";
import { propertyRuns } from "../../effort.ts";

const folder = mkdtempSync(join(tmpdir(), "reeve-memory-"));
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
let files = 0;
const newPath = (): string => join(folder, `${++files}.db`);

async function open(path = newPath(), name = "m"): Promise<{ memory: Memory; clock: FakeClock }> {
  const clock = new FakeClock();
  return { clock, memory: await openMemory({ path, clock, ids: sequentialIds(name) }) };
}

describe("FullTextMemory", () => {
  memoryContract({ test, expect, open: () => open() });

  test("openMemory() refuses to open a memory without a path", async () => {
    await expect(openMemory({})).rejects.toThrow("invalid path undefined of openMemory()");
  });

  test("FullTextMemory keeps everything when its file is opened again, and shares it with every process that has the file open", async () => {
    const path = newPath();
    const { memory: one } = await open(path, "one");
    const { memory: two } = await open(path, "two");
    const scope = { userId: "ada" };
    const writes = Array.from({ length: 40 }, (_, index) =>
      (index % 2 === 0 ? one : two).remember(scope, { type: "episode", text: `note ${index}` }),
    );
    expect(new Set(await Promise.all(writes)).size).toBe(40);
    await one.close();
    await two.close();
    const { memory: again } = await open(path, "again");
    expect((await again.recall(scope, { text: "note", limit: 100 })).episodes).toHaveLength(40);
    await again.close();
  });

  test("Y5: FullTextMemory deletes the text of forgotten entries from its file", async () => {
    const path = newPath();
    const { memory } = await open(path);
    const scope = { userId: "ada" };
    await memory.remember(scope, { type: "episode", text: "the word is xylophonist" });
    await memory.remember(scope, {
      type: "fact",
      fact: { subject: "Ada", predicate: "plays", object: "the xylophonist's part" },
    });
    await memory.remember(scope, { type: "block", block: { name: "b", text: "xylophonist" } });
    await memory.forget(scope);
    await memory.close();
    for (const name of readdirSync(folder).filter((each) => each.startsWith(`${files}.db`)))
      expect(readFileSync(join(folder, name)).includes("xylophon")).toBe(false);
  });

  test("openMemory() refuses a file of another program and leaves it unchanged", async () => {
    const path = newPath();
    const other = new DatabaseSync(path);
    other.exec("CREATE TABLE theirs (x)");
    other.close();
    await expect(openMemory({ path })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(openMemory({ path: join(folder, "nowhere", "m.db") })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("Y3: FullTextMemory keeps at most one valid fact at any time, in whatever order facts arrive, and the last write wins", () => {
    const fact = fc.record({
      object: fc.constantFrom("a", "b", "c"),
      validFrom: fc.integer({ min: 0, max: 8 }),
    });
    fc.assert(
      fc.property(fc.array(fact, { maxLength: 12 }), (said) => {
        let known: Pick<Fact, "id" | "object" | "validFrom" | "validUntil">[] = [];
        const believed = new Map<number, string>();
        for (const [index, each] of said.entries()) {
          const { validUntil, closes, repeats } = supersede(known, each);
          // The new fact holds from its start to the next known change.
          const next = Math.min(
            9,
            ...[...known]
              .filter((one) => one.validFrom > each.validFrom && one.validFrom !== one.validUntil)
              .map((one) => one.validFrom),
          );
          for (let at = each.validFrom; at < next; at++) believed.set(at, each.object);
          if (repeats !== null) continue;
          known = known.map((one) => (one.id === closes ? { ...one, validUntil: each.validFrom } : one));
          known.push({ ...each, id: String(index), validUntil });
        }
        for (let at = 0; at < 9; at++) {
          const valid = known.filter(
            ({ validFrom, validUntil }) => validFrom <= at && (validUntil === null || validUntil > at),
          );
          expect(valid.map(({ object }) => object)).toEqual(believed.has(at) ? [believed.get(at)] : []);
        }
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });
});
