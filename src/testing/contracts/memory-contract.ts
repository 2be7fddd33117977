import type { JsonObject, Memory, MemoryScope } from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import type { FakeClock } from "../fake-clock.ts";

/** The parameters of `memoryContract`: the functions of a test runner, and a function that opens new memories. */
export interface MemoryHarness extends Pick<ContractHarness, "test" | "expect"> {
  /** Opens a new, empty memory and returns it with the clock that it uses. Each test calls it once. */
  readonly open: () => Promise<{ readonly memory: Memory; readonly clock: FakeClock }>;
}

const ada: MemoryScope = { userId: "ada" };
const others: readonly MemoryScope[] = [
  { userId: null },
  { userId: "" },
  { userId: "bob" },
  { userId: "ada", agentId: "scout" },
  { userId: null, agentId: "ada" },
  { userId: "ada", tenantId: "acme" },
  { userId: null, tenantId: "ada" },
  { userId: "ada", agentId: "scout", tenantId: "acme" },
];

/** Tests of the rules that every implementation of `Memory` must keep. */
export function memoryContract({ test, expect, open }: MemoryHarness): void {
  const all = async (memory: Memory, scope: MemoryScope): Promise<readonly JsonObject[]> => {
    const found: JsonObject[] = [];
    for await (const each of memory.export(scope)) found.push(each);
    return found;
  };
  const about = async (memory: Memory, text: string, asOf?: number): Promise<readonly string[]> => {
    const { facts } = await memory.recall(ada, { text, ...(asOf !== undefined && { asOf }) });
    return facts.map(({ object }) => object);
  };
  const lives = (object: string, validFrom?: number) =>
    ({
      type: "fact",
      fact: { subject: "Ada", predicate: "lives in", object, ...(validFrom !== undefined && { validFrom }) },
    }) as const;

  test("Y1: nothing of one scope can be read, changed or forgotten from another scope", async () => {
    const { memory } = await open();
    await memory.remember(ada, { type: "block", block: { name: "style", text: "brief" } });
    const id = await memory.remember(ada, { type: "episode", text: "met in Blois" });
    const fact = await memory.remember(ada, lives("Blois"));
    for (const scope of others) {
      expect(await memory.blocks(scope)).toEqual([]);
      expect(await memory.recall(scope, { text: "Blois" })).toEqual({ episodes: [], facts: [] });
      expect(await memory.recall(scope, { text: "" })).toEqual({ episodes: [], facts: [] });
      expect(await all(memory, scope)).toEqual([]);
      expect(await memory.forget(scope, { ids: [id, fact, "style"] })).toBe(0);
      expect(await memory.forget(scope)).toBe(0);
      await memory.remember(scope, { type: "block", block: { name: "style", text: "long" } });
      await memory.remember(scope, lives("Tours"));
    }
    expect(await memory.blocks(ada)).toEqual([{ name: "style", text: "brief" }]);
    expect(await about(memory, "lives")).toEqual(["Blois"]);
  });

  test("Y2: a block keeps its text until it is written again, and an empty text deletes it", async () => {
    const { memory } = await open();
    const write = (name: string, text: string): Promise<string> =>
      memory.remember(ada, { type: "block", block: { name, text } });
    await write("style", "brief");
    await write("name", "Ada");
    await write("style", "very brief");
    expect(await memory.blocks(ada)).toEqual([
      { name: "name", text: "Ada" },
      { name: "style", text: "very brief" },
    ]);
    await write("style", "");
    expect(await memory.blocks(ada)).toEqual([{ name: "name", text: "Ada" }]);
  });

  test("Y3: a new fact closes the previous one, and recall() can still read what was valid earlier", async () => {
    const { memory, clock } = await open();
    const start = clock.now();
    await memory.remember(ada, lives("Blois"));
    await clock.advance(100);
    await memory.remember(ada, lives("Tours"));
    expect(await about(memory, "Ada")).toEqual(["Tours"]);
    expect(await about(memory, "Ada", start + 99)).toEqual(["Blois"]);
    expect(await about(memory, "Ada", start + 100)).toEqual(["Tours"]);
    expect(await about(memory, "Ada", start - 1)).toEqual([]);
  });

  test("Y3: a fact that is recorded late ends where the next fact begins", async () => {
    const { memory, clock } = await open();
    const start = clock.now();
    await memory.remember(ada, lives("Blois", start - 1_000));
    await memory.remember(ada, lives("Tours", start - 100));
    await memory.remember(ada, lives("Angers", start - 500));
    const at = (time: number): Promise<readonly string[]> => about(memory, "Ada", start + time);
    expect([await at(-1_000), await at(-500), await at(-100), await at(0)]).toEqual([
      ["Blois"],
      ["Angers"],
      ["Tours"],
      ["Tours"],
    ]);
  });

  test("Y3: a fact that is already known is not written again", async () => {
    const { memory, clock } = await open();
    const first = await memory.remember(ada, lives("Blois"));
    await clock.advance(5);
    expect(await memory.remember(ada, lives("Blois"))).toBe(first);
    expect((await all(memory, ada)).length).toBe(1);
  });

  test("J6: writing again under the same id changes nothing", async () => {
    const { memory } = await open();
    for (const text of ["once", "twice"])
      expect(await memory.remember(ada, { type: "episode", text, id: "call-1" })).toBe("call-1");
    for (const city of ["Blois", "Tours"]) await memory.remember(ada, { ...lives(city), id: "call-2" });
    const { episodes, facts } = await memory.recall(ada, { text: "" });
    expect(episodes.map(({ text }) => text)).toEqual(["once"]);
    expect(facts.map(({ object }) => object)).toEqual(["Blois"]);
  });

  test("Y4: recall() ignores case and accents and returns the closest match first", async () => {
    const { memory } = await open();
    for (const text of ["the weather was fine", "a CAFÉ by the river", "the café of the café"])
      await memory.remember(ada, { type: "episode", text });
    const { episodes } = await memory.recall(ada, { text: "Cafe?" });
    expect(episodes.map(({ text }) => text)).toEqual(["the café of the café", "a CAFÉ by the river"]);
  });

  test("Y4: a query may contain any text without an error and never reaches another scope", async () => {
    const { memory } = await open();
    await memory.remember({ userId: "bob" }, { type: "episode", text: "secret" });
    await memory.remember(ada, { type: "episode", text: "plain", metadata: { source: "chat" } });
    const hostile = [
      '"',
      "*",
      "secret OR scope:scope1",
      'secret" OR "',
      "NEAR(",
      "-",
      "text : secret",
      "%_",
      "()",
    ];
    for (const text of hostile) {
      const { episodes } = await memory.recall(ada, { text });
      expect(episodes.filter((each) => each.text === "secret")).toEqual([]);
    }
    const [latest] = (await memory.recall(ada, { text: " " })).episodes;
    expect({ text: latest?.text, metadata: latest?.metadata }).toEqual({
      text: "plain",
      metadata: { source: "chat" },
    });
  });

  test("Y4: recall() returns at most its limit, and the latest entries if the query is empty", async () => {
    const { memory, clock } = await open();
    for (const text of ["one", "two", "three"]) {
      await memory.remember(ada, { type: "episode", text });
      await clock.advance(1);
    }
    const { episodes } = await memory.recall(ada, { text: "", limit: 2 });
    expect(episodes.map(({ text }) => text)).toEqual(["three", "two"]);
    await expect(memory.recall(ada, { text: "", limit: 0 })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });

  test("Y5: forgotten entries disappear from recall() and from the export, and other entries stay", async () => {
    const { memory } = await open();
    await memory.remember(ada, { type: "block", block: { name: "style", text: "brief" } });
    const id = await memory.remember(ada, { type: "episode", text: "met in Blois" });
    await memory.remember(ada, { type: "episode", text: "met in Tours" });
    const fact = await memory.remember(ada, lives("Blois"));
    expect(await memory.forget(ada, { ids: [id, fact, "nothing of the kind"] })).toBe(2);
    expect((await memory.recall(ada, { text: "Blois met" })).episodes.map(({ text }) => text)).toEqual([
      "met in Tours",
    ]);
    expect((await all(memory, ada)).map(({ type }) => type)).toEqual(["block", "episode"]);
    expect(await memory.forget(ada)).toBe(2);
    expect(await all(memory, ada)).toEqual([]);
  });

  test("the export contains everything, closed facts included", async () => {
    const { memory, clock } = await open();
    await memory.remember(ada, { type: "episode", text: "met", metadata: { place: "Blois" }, id: "e" });
    await memory.remember(ada, { ...lives("Blois"), id: "f" });
    await clock.advance(7);
    await memory.remember(ada, { ...lives("Tours"), id: "g" });
    const start = clock.now() - 7;
    const fact = { type: "fact", subject: "Ada", predicate: "lives in" };
    expect(await all(memory, ada)).toEqual([
      { type: "episode", id: "e", text: "met", at: start, metadata: { place: "Blois" } },
      { ...fact, id: "f", object: "Blois", validFrom: start, validUntil: start + 7, recordedAt: start },
      { ...fact, id: "g", object: "Tours", validFrom: start + 7, validUntil: null, recordedAt: start + 7 },
    ]);
  });
}
