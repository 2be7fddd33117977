import { describe, expect, test } from "vitest";
import { Agent, OrchestratorAgent, type StopHook } from "../../../../src/entries/index.ts";
import { messageText, type Tool } from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { look, looks, scout } from "../../scout.ts";

describe("stop hooks", () => {
  const twice: StopHook = {
    name: "twice",
    shouldContinue: ({ continued }) => (continued < 2 ? `again ${continued}` : undefined),
  };

  test("a stop hook may continue the agent in the same session and run", async () => {
    const { agent, model } = scout(["a", "b", "c"], { stopHooks: [twice] });
    expect(await agent.invoke("Go")).toMatchObject({ status: "completed", output: "c", turns: 3 });
    expect(model.calls[2]?.messages.map(messageText)).toEqual(["Go", "a", "again 0", "b", "again 1"]);
  });

  test("the first stop hook that returns a text continues the run, and a stop hook that throws is recorded and ignored", async () => {
    const broken: StopHook = {
      name: "broken",
      shouldContinue: () => {
        throw new Error("hook broke");
      },
    };
    const { agent } = scout(["a", "b"], {
      stopHooks: [
        broken,
        { ...twice, shouldContinue: ({ continued }) => (continued === 0 ? "more" : undefined) },
      ],
    });
    const stream = agent.stream("Go");
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types.filter((type) => type === "hook_error")).toHaveLength(2);
    expect(await stream.result()).toMatchObject({ output: "b" });
  });

  test.each([[""], [" \n"], [false], [null]])(
    "a stop hook that returns %j does not continue the run",
    async (vote) => {
      const { agent, model } = scout(["a", "b"], {
        stopHooks: [{ name: "odd", shouldContinue: () => vote as string }],
      });
      expect(await agent.invoke("Go")).toMatchObject({ status: "completed", output: "a" });
      expect(model.calls).toHaveLength(1);
    },
  );

  test.each([[true], [7], [{ message: "more" }]])(
    "a stop hook that returns %j does not continue the run and is recorded as hook_error",
    async (vote) => {
      const { agent } = scout(["a", "b"], {
        stopHooks: [{ name: "odd", shouldContinue: () => vote as unknown as string }],
      });
      const stream = agent.stream("Go");
      const failures = [];
      for await (const event of stream) if (event.type === "hook_error") failures.push(event.data.failure);
      expect(failures).toMatchObject([
        {
          code: "invalid_argument",
          message: expect.stringMatching(/^invalid result .* of stop hook odd: /u),
        },
      ]);
      expect(await stream.result()).toMatchObject({ status: "completed", output: "a" });
    },
  );

  test("stop hooks continue a run at most 15 times", async () => {
    const script = Array.from({ length: 20 }, (_, index) => `answer ${index}`);
    const { agent, model } = scout(script, { stopHooks: [{ name: "never", shouldContinue: () => "more" }] });
    expect(await agent.invoke("Go")).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_continuations",
    });
    expect(model.calls).toHaveLength(16);
  });
});

describe("changes to an agent's list of tools", () => {
  test.each(["alone", "as an orchestrator"])(
    "a tool that is added to the list is available from the next invocation on: %s",
    async (kind) => {
      const list: Tool[] = [];
      const model = scriptedModel([looks, "nothing to look with", looks, "rain"]);
      const options = { name: "lead", model, tools: list };
      const worker = new Agent({ name: "worker", model: scriptedModel([]) });
      const agent =
        kind === "alone"
          ? new Agent(options)
          : new OrchestratorAgent({ ...options, subAgents: [{ agent: worker }] });
      const own = kind === "alone" ? [] : ["handoff_worker"];
      await agent.invoke("Look");
      list.push(look);
      await agent.invoke("Look");
      const offered = model.calls.map(({ tools = [] }) => tools.map(({ name }) => name));
      expect(offered).toEqual([own, own, ["look", ...own], ["look", ...own]]);
      const [missing, found] = [model.calls[1], model.calls[3]].map((call) =>
        JSON.stringify(call?.messages.at(-1)),
      );
      expect(missing).toContain("there is no tool look");
      expect(found).toContain("rain in Sens");
    },
  );
});
