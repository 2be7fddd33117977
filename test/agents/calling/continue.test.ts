import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent, tool, type AgentOptions } from "../../../src/entries/index.ts";
import { planAndExecute } from "../../../src/agents/architectures/index.ts";
import type { LevelMiddleware } from "../../../src/agents/interception/middleware/layer.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel, type ScriptedModel } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const look = tool({
  name: "look",
  description: "Looks around.",
  inputSchema: { type: "object" } as const,
  execute: () => "A door.",
});
const looking = { toolCalls: [{ name: "look", input: {} }] };

function scout(script: Parameters<typeof scriptedModel>[0], more: Partial<AgentOptions> = {}) {
  const model = scriptedModel(script);
  return { model, agent: new Agent({ name: "scout", model, tools: [look], maxTurns: 1, ...more }) };
}

const rolesIn = ({ calls }: ScriptedModel) => calls.at(-1)?.messages.map(({ role }) => role);

describe("continue()", () => {
  test.each(twoStores)(
    "continue() lets the model answer a session that ended with max_turns, in a second runtime (%s)",
    async (_name, prepare) => {
      const open = await prepare();
      const { agent, model } = scout([looking, "There is a door.", "It is red."]);
      const first = await createRuntime({ store: await open() });
      const { status, sessionId } = await agent.invoke("What do you see?", { runtime: first });
      expect(status).toBe("max_turns");
      await first.close();
      const runtime = await createRuntime({ store: await open() });
      const result = await agent.continue(sessionId, { runtime });
      expect(result).toMatchObject({ status: "completed", output: "There is a door.", sessionId });
      expect(rolesIn(model)).toEqual(["user", "assistant", "tool"]);
      await agent.invoke("Which colour?", { runtime, sessionId });
      expect(rolesIn(model)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
      await runtime.close();
    },
  );

  test("continue() answers the message of a run that was cancelled before the model answered", async () => {
    const asking = Promise.withResolvers<void>();
    const hold: LevelMiddleware = {
      level: "chat",
      name: "hold",
      process: ({ signal }) => {
        asking.resolve();
        return new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason)),
        );
      },
    };
    const held = scout([], { middleware: [hold] });
    const run = await held.agent.submit("Where are you?");
    await asking.promise;
    await run.cancel();
    const { agent, model } = scout(["Here."]);
    expect((await run.result()).status).toBe("cancelled");
    expect((await agent.continue(run.sessionId)).output).toBe("Here.");
    expect(rolesIn(model)).toEqual(["user"]);
  });

  test("continue() returns a value of its schema and does not ask the input guardrails", async () => {
    const inputs: unknown[] = [];
    const onInput = (input: unknown) => {
      inputs.push(input);
      return { decision: "allow" } as const;
    };
    const { agent } = scout([looking, '{"door":"red"}'], { guardrails: [{ name: "watch", onInput }] });
    const { sessionId } = await agent.invoke("Look.");
    const result = await agent.continue(sessionId, { output: z.object({ door: z.string() }) });
    expect(result).toMatchObject({ status: "completed", output: { door: "red" } });
    expect(inputs).toEqual(["Look."]);
  });

  test("stream() and submit() continue a session with the input { continue: true }", async () => {
    const { agent } = scout([looking, looking, "A door."]);
    const { sessionId } = await agent.invoke("Look.");
    const second = await agent.stream({ continue: true }, { sessionId }).result();
    expect(second.status).toBe("max_turns");
    const run = await agent.submit({ continue: true }, { sessionId });
    expect(await run.result()).toMatchObject({ status: "completed", output: "A door." });
  });

  test.each([
    ["ends with an answer", async (agent: Agent) => (await agent.invoke("Hello.")).sessionId],
    ["has no messages", async () => "an-unknown-session"],
  ])(
    "continue() fails with invalid_argument and calls no model if the session %s",
    async (problem, start) => {
      const { agent, model } = scout(["Hello.", "never"]);
      const sessionId = await start(agent);
      const { calls } = model;
      const before = calls.length;
      const result = await agent.continue(sessionId);
      expect(result).toMatchObject({ status: "failed", error: { code: "invalid_argument" } });
      expect(result.error?.message).toContain(`it ${problem}; use invoke() with a message`);
      expect(calls).toHaveLength(before);
    },
  );

  test("continue() is refused before a run starts if there is no session id", async () => {
    const { agent } = scout([]);
    const expected = {
      code: "invalid_argument",
      message: "agent scout cannot continue without a session: sessionId is missing; use continue(sessionId)",
    };
    await expect(agent.continue(undefined as never)).rejects.toMatchObject(expected);
    await expect(agent.submit({ continue: true })).rejects.toMatchObject(expected);
  });

  test("continue() is refused before a run starts if the architecture needs a message", async () => {
    const { agent } = scout([], { architecture: planAndExecute() });
    await expect(agent.continue("chat")).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("its architecture plan-and-execute needs one"),
    });
  });
});
