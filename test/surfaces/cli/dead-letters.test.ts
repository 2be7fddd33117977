import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { formatAgentId } from "../../../src/kernel/index.ts";
import { openStore } from "../../../src/entries/index.ts";
import { reeve } from "./reeve-process.ts";

const clerk = formatAgentId({ name: "clerk" });
const porter = formatAgentId({ name: "porter" });

async function setUp(): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-letters-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const store = `sqlite:${join(folder, "reeve.db")}`;
  const opened = await openStore(store, { inbox: { maxDeliveries: 1 } });
  const { inbox } = opened;
  for (const [to, id] of [
    [clerk, "a"],
    [clerk, "b\n"],
    [porter, "c"],
    [porter, "-d"],
  ] as const) {
    await inbox.deliver({ id, from: porter, to, body: { id }, sentAt: 1 });
    await inbox.nack(to, [id]);
  }
  await opened.close();
  return ["--store", store];
}

test("reeve dead-letters lists dead letters, and reeve redeliver redelivers all dead letters of an agent or the named ones", async () => {
  const store = await setUp();
  const all = await reeve(["dead-letters", ...store]);
  expect([all.code, all.out.length]).toEqual([0, 4]);
  expect(all.out[0]).toBe('clerk  a  tried 1x  from porter  -  {"id":"a"}');
  const own = await reeve(["dead-letters", "clerk", "--json", ...store]);
  expect(own.out.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { message: { id: "a" }, deliveries: 1 },
    { message: { id: "b\n" } },
  ]);
  const wrong = await reeve(["redeliver", "clerk", "a", "c", ...store]);
  expect([wrong.code, wrong.out]).toEqual([3, []]);
  expect(wrong.talk).toContain("dead letter c of agent clerk not found");
  expect(await reeve(["redeliver", "clerk", "a", ...store])).toMatchObject({ code: 0, out: ["1"] });
  expect((await reeve(["redeliver", "clerk", ...store])).out).toEqual(["1"]);
  expect((await reeve(["dead-letters", ...store])).out.map((line) => line.split(" ")[0])).toEqual([
    "porter",
    "porter",
  ]);
});

test("reeve redeliver accepts a message id that begins with - after --, as its help says", async () => {
  const store = await setUp();
  expect((await reeve(["redeliver", ...store, "porter", "--", "-d"])).out).toEqual(["1"]);
  expect((await reeve(["redeliver", "--help"])).out.join("\n")).toContain("MESSAGE that begins with -");
});
