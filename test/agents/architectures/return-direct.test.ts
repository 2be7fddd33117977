import { describe, expect, test } from "vitest";
import { z } from "zod";
import { errorResult, tool } from "../../../src/entries/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";
import { company, resultsIn, runAlone, worker } from "../company.ts";
import { reopen } from "../reopened.ts";

removeStoresAfterEach();

const price = tool({
  name: "price",
  description: "Returns the price of an article.",
  inputSchema: z.object({ article: z.string() }),
  returnDirect: true,
  execute: ({ article }) =>
    article === "unknown" ? errorResult("there is no such article") : { article, euros: 7 },
});
const asking = (...articles: readonly string[]) => ({
  text: "Let me look.",
  toolCalls: articles.map((article) => ({ name: "price", input: { article } })),
});

describe("a tool with returnDirect", () => {
  test("the result of a tool with returnDirect is the answer, and the model is not called again", async () => {
    const { agent, model } = worker("clerk", [asking("pen")], { tools: [price] });
    const { result } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: '{"article":"pen","euros":7}', turns: 1 });
    expect(model.calls).toHaveLength(1);
  });

  test("the first result of two calls of a tool with returnDirect is the answer", async () => {
    const { agent } = worker("clerk", [asking("pen", "ink")], { tools: [price] });
    expect((await runAlone(agent)).result.output).toBe('{"article":"pen","euros":7}');
  });

  test("an error of a tool with returnDirect is shown to the model", async () => {
    const { agent, model } = worker("clerk", [asking("unknown"), "We do not have it."], { tools: [price] });
    expect((await runAlone(agent)).result.output).toBe("We do not have it.");
    expect(resultsIn(model)).toEqual(["error: there is no such article"]);
  });

  test("the result of a tool with returnDirect matches the output schema without another model call", async () => {
    const { agent, model } = worker("clerk", [asking("pen")], { tools: [price] });
    const output = z.object({ article: z.string(), euros: z.number() });
    expect(await agent.invoke("Pen?", { output })).toMatchObject({
      status: "completed",
      output: { article: "pen", euros: 7 },
    });
    expect(model.calls).toHaveLength(1);
  });

  test("a session continues after an answer of a tool with returnDirect", async () => {
    const { run } = await company();
    const { agent, model } = worker("clerk", [asking("pen"), "You are welcome."], { tools: [price] });
    await run(agent, "Pen?", { sessionId: "chat" });
    await run(agent, "Thanks.", { sessionId: "chat" });
    expect(model.calls.at(-1)?.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "user",
    ]);
  });

  test.each(twoStores)(
    "a client-side tool with returnDirect gives the answer in a second runtime (%s)",
    async (_name, prepare) => {
      const sign = tool({
        name: "sign",
        description: "Asks for a signature.",
        inputSchema: { type: "object" } as const,
        clientSide: true,
        returnDirect: true,
      });
      const signing = { toolCalls: [{ name: "sign", input: {}, callId: "call-1" }] };
      const { agent, model } = worker("clerk", [signing], { tools: [sign] });
      await using second = await reopen(await prepare(), agent, ({ type }) => type === "approval_request");
      await second.run.toolResult("call-1", "Ada");
      expect(await second.run.result()).toMatchObject({ status: "completed", output: "Ada" });
      expect(model.calls).toHaveLength(1);
    },
  );
});
