import { expect, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../../src/entries/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { all } from "../../../../src/testing/contracts/store-fixtures.ts";
import { connect, count, newPath } from "./store-files.ts";

const instructions = "You read long pages and answer questions about them.\n".repeat(200);
const page = "a line of a long page\n".repeat(1_000);
const looks: ScriptStep = { toolCalls: [{ name: "read", input: {}, callId: "c1" }] };
const script: readonly ScriptStep[] = [looks, { text: "done" }];

/** A tool whose description makes the agent's tool list large. */
const read = tool({
  name: "read",
  description: "Reads the page.\n".repeat(400),
  inputSchema: { type: "object" },
  execute: async () => page,
});

/** The sizes of the stored contents. */
function sizes(path: string): readonly number[] {
  const rows = connect(path).prepare("SELECT length(data) AS size FROM content_pieces ORDER BY 1").all();
  return rows.map(({ size }) => Number(size));
}

test("SQLite stores the prompt, tools and results of an agent once for several runs, their sessions and a fork", async () => {
  const path = await newPath();
  const store = `sqlite:${path}` as const;
  const agentFor = (): Agent =>
    new Agent({ name: "reader", model: scriptedModel([...script, ...script]), instructions, tools: [read] });
  const agent = agentFor();
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const first = await runtime.submit(agent, "go", { sessionId: "one" });
  expect(await first.result()).toMatchObject({ output: "done" });
  expect(sizes(path)).toHaveLength(3);
  expect(sizes(path)).toEqual(expect.arrayContaining([instructions.length, page.length]));
  const second = await runtime.submit(agent, "go", { sessionId: "two" });
  expect(await second.result()).toMatchObject({ output: "done" });
  const toolEnds = await all(first.events({ types: ["tool_execution_end"] }));
  const [ended] = toolEnds;
  const at = ended !== undefined && "seq" in ended ? ended.seq : -1;
  expect(sizes(path)).toHaveLength(3);
  await runtime.close();

  const again = await openRuntime({ store, unknownPrice: "ignore" });
  again.register(agentFor());
  const origin = await again.find(first.runId);
  if (origin === undefined) throw new Error(`${first.runId} is stored`);
  const fork = await origin.fork({ at });
  expect(await fork.result()).toMatchObject({ output: "done" });
  expect(sizes(path)).toHaveLength(3);
  expect(JSON.stringify((await origin.result()).messages)).toContain(JSON.stringify(page));
  await again.collect({ endedBefore: Date.now() + 1_000 });
  expect(sizes(path)).toEqual([page.length]);
  await again.sessions.delete("one");
  await again.sessions.delete("two");
  expect(sizes(path)).toEqual([page.length]);
  await again.sessions.delete(fork.sessionId);
  expect(count(path, "contents")).toBe(0);
  await again.close();
});
