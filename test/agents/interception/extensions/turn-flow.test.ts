import { expect, test } from "vitest";
import { Agent, openRuntime, tool, type Extension, type Guardrail } from "../../../../src/entries/index.ts";
import type { Event } from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";

const allow = { decision: "allow" } as const;

/** Committed events of an invocation with one tool call, in the order of the log. */
const committed = [
  "task_start",
  "agent_start",
  "turn_start",
  "message_start",
  "message_end",
  "tool_execution_start",
  "tool_execution_end",
  "turn_end",
  "agent_end",
  "save_point",
  "settled",
  "task_end",
  "run_end",
] as const;

test("an invocation passes all steps of the turn flow in order, with a handler at each", async () => {
  const steps: string[] = [];
  const delivered: Event[] = [];
  const note = (step: string) => () => void steps.push(step);
  const watcher: Extension = {
    name: "watcher",
    setup(api) {
      for (const type of ["input", "before_agent_start", "context", "tool_call", "tool_result"] as const)
        api.on(type, note(type));
      for (const type of committed) api.on(type, (event) => void delivered.push(event as Event));
    },
  };
  const guardrail: Guardrail = {
    name: "guardrail",
    onTurnStart: note("onTurnStart"),
    onInput: () => (steps.push("onInput"), allow),
    beforeCall: () => (steps.push("beforeCall"), allow),
    afterCall: () => (steps.push("afterCall"), allow),
    onOutput: () => (steps.push("onOutput"), allow),
  };
  const look = tool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object" },
    execute: () => (steps.push("execute"), "seen"),
  });
  const agent = new Agent({
    name: "scout",
    model: scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "Done."]),
    instructions: () => (steps.push("instructions"), "Look around."),
    tools: [look],
    guardrails: [guardrail],
    extensions: [watcher],
  });
  await using runtime = await openRuntime();
  const run = await agent.submit("go", { runtime });
  expect(await run.result()).toMatchObject({ status: "completed", output: "Done." });
  expect(steps).toEqual([
    "onTurnStart",
    "input",
    "instructions",
    "before_agent_start",
    "context",
    "onInput",
    "tool_call",
    "beforeCall",
    "execute",
    "tool_result",
    "afterCall",
    "onOutput",
  ]);
  const log: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) log.push(event);
  expect(log.map(({ type }) => type)).toEqual([
    "run_start",
    "task_start",
    "input",
    "before_agent_start",
    "context",
    "agent_start",
    "step_end",
    "turn_start",
    "message_start",
    "message_end",
    "tool_execution_start",
    "tool_execution_end",
    "turn_end",
    "turn_start",
    "message_start",
    "message_end",
    "turn_end",
    "step_end",
    "agent_end",
    "save_point",
    "settled",
    "task_end",
    "run_end",
  ]);
  // Handlers of committed events receive exactly those events, in the order of the log.
  expect(delivered).toEqual(log.filter(({ type }) => (committed as readonly string[]).includes(type)));
  expect(runtime.extensionErrors()).toEqual([]);
});
