import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import type { Event, Memory, ModelRequest } from "../../../src/kernel/index.ts";
import { openMemory } from "../../../src/assembly/memory.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { architectureCases } from "../architecture-cases/index.ts";
import { InProcessServices } from "../architecture-cases/in-process-services.ts";
import { openPlace, places } from "../interception/gate/place.ts";

const folder = mkdtempSync(join(tmpdir(), "reeve-recalled-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

async function memoryOfAda(): Promise<Memory> {
  const memory = await openMemory({ path: join(folder, `${++files}.db`) });
  const ada = { userId: "ada" };
  await memory.remember(ada, { type: "block", block: { name: "style", text: "Brief answers." } });
  await memory.remember(ada, { type: "episode", text: "The tide was out, and it was two fathoms deep." });
  await memory.remember(ada, { type: "episode", text: "Lunch was late." });
  const fact = { subject: "The quay", predicate: "is deeper than", object: "the slipway" };
  await memory.remember(ada, { type: "fact", fact });
  await memory.remember({ userId: "bob" }, { type: "block", block: { name: "style", text: "Long tales." } });
  return memory;
}

/** Agents to which the model of a case delegates tasks in its own words. They know only what the task says. */
const delegates: Readonly<Record<string, readonly string[]>> = {
  supervisor: ["diver", "spare"],
  orchestrator: ["diver", "climber"],
  "deep-agent": ["helper"],
};

describe("Agent({ memory })", () => {
  test.each(Object.keys(architectureCases))(
    "Agent({ memory }) adds blocks and the best matches to every prompt of the architecture %s",
    async (name) => {
      const each = architectureCases[name];
      if (each === undefined) throw new Error("no case");
      const services = new InProcessServices(each.reply);
      const agent = each.agent(services);
      if (!(agent instanceof Agent)) throw new Error("not an agent");
      const memory = await memoryOfAda();
      const runtime = await openRuntime({ unknownPrice: "ignore" });
      onTestFinished(() => runtime.close());
      const run = await runtime.submit(agent.with({ memory }), each.input, { userId: "ada" });
      expect((await run.result()).output).toEqual(each.output);
      await memory.close();
      const prompts = services.calls
        .filter((call) => call.name === "model" && !delegates[name]?.includes(call.key.split(" ")[0] ?? ""))
        .map(({ body }) => JSON.stringify(body));
      expect(prompts.length).toBeGreaterThan(0);
      for (const prompt of prompts) {
        expect(prompt).toContain("Brief answers.");
        expect(prompt).toContain("it was two fathoms deep.");
        expect(prompt).not.toContain("Long tales.");
      }
    },
  );

  test.each(places)(
    "Agent({ memory }) recalls once per invocation: a restart sends the same prompt (%s)",
    async (name) => {
      const place = await openPlace(name);
      const memory = await memoryOfAda();
      const requests: ModelRequest[] = [];
      const agent = (...replies: Parameters<typeof scriptedModel>[0]): Agent =>
        new Agent({
          name: "guide",
          instructions: "You are a guide.",
          memory,
          model: scriptedModel(
            replies.map((reply) => (request: ModelRequest) => {
              requests.push(request);
              return typeof reply === "function" ? reply(request) : reply;
            }),
          ),
          tools: [],
          subAgents: [],
          stopHooks: [{ name: "again", shouldContinue: async () => "Go on." }],
        });
      const failing = agent("Which way?", () => {
        throw Object.assign(new Error("invalid key"), { statusCode: 401 });
      });
      const first = await (
        await place.restart(failing)
      ).submit(failing, "How deep is it?", { userId: "ada" });
      expect((await first.result()).status).toBe("failed");
      await memory.remember(
        { userId: "ada" },
        { type: "block", block: { name: "style", text: "Whole chapters." } },
      );
      const working = agent(...Array.from({ length: 20 }, () => "Two fathoms."));
      await place.restart(working);
      const run = await place.find(first.runId);
      await run.resume();
      await run.result();
      const systems = new Set(requests.map(({ messages }) => JSON.stringify(messages[0])));
      expect(systems.size).toBe(1);
      expect([...systems][0]).toContain("Brief answers.");
      const recalls: Event[] = [];
      for await (const event of run.events({ types: ["memory_recall"] }))
        if ("seq" in event) recalls.push(event);
      expect(recalls.map(({ data }) => data)).toEqual([{ episodes: 1, facts: 1 }]);
      await memory.close();
    },
  );

  test("Agent({ memory }) continues without the memory and records the error if the memory fails", async () => {
    const memory = await memoryOfAda();
    const broken: Memory = {
      blocks: () => Promise.reject(new Error("the disk is full")),
      recall: (scope, query) => memory.recall(scope, query),
      remember: (scope, write) => memory.remember(scope, write),
      forget: (scope, query) => memory.forget(scope, query),
      export: (scope) => memory.export(scope),
      close: () => memory.close(),
    };
    const agent = new Agent({ name: "guide", model: scriptedModel(["Left."]), memory: broken });
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    onTestFinished(() => runtime.close());
    const run = await runtime.submit(agent, "Which way?", { userId: "ada" });
    expect(await run.result()).toMatchObject({ status: "completed", output: "Left." });
    const errors: unknown[] = [];
    for await (const event of run.events({ types: ["hook_error"] }))
      if ("seq" in event) errors.push(event.data);
    expect(errors).toMatchObject([{ hook: "memory", failure: { message: "the disk is full" } }]);
    await memory.close();
  });

  test("Agent({ memory }) cuts long matches, keeps each on one line and recalls nothing for another user", async () => {
    const memory = await memoryOfAda();
    await memory.remember(
      { userId: "ada" },
      { type: "episode", text: `harbour\n# Orders\n${"x".repeat(9_000)}` },
    );
    const requests: ModelRequest[] = [];
    const model = scriptedModel(
      [0, 1].map(() => (request: ModelRequest) => (requests.push(request), "Left.")),
    );
    const agent = new Agent({ name: "guide", model, memory });
    await agent.invoke("Where is the harbour?", { userId: "ada" });
    await agent.invoke("Where is the harbour?", { userId: "eve" });
    const [first, second] = requests.map(({ messages }) => JSON.stringify(messages));
    expect(first).toContain("harbour # Orders xxx");
    expect(first?.length).toBeLessThan(3_000);
    expect(second).not.toContain("Memory");
    await memory.close();
  });
});
