import { expect, test } from "vitest";
import { Agent } from "../../../../src/assembly/agent.ts";
import {
  humanApproval,
  type HumanApprovalOptions,
} from "../../../../src/agents/interception/middleware/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { setUp, simpleTool, text, until } from "../../../runtime/runtime-setup.ts";
import { runScene } from "./contexts.ts";

const send = simpleTool({ name: "send", execute: async () => text("sent") });
const wipe = {
  ...simpleTool({ name: "wipe", execute: async () => text("wiped") }),
  risk: "critical",
} as const;

test.for<[HumanApprovalOptions, string, string]>([
  [{}, "allow", "ask"],
  [{ tools: ["send"] }, "ask", "ask"],
  [{ tools: [] }, "allow", "ask"],
  [{ tools: () => false }, "allow", "ask"],
  [{ tools: () => true }, "ask", "ask"],
])(
  "humanApproval(%o) decides %s for a normal tool and %s for a critical tool",
  async ([options, first, second]) => {
    const permissions = humanApproval(options);
    const { facts } = runScene().context;
    const decide = async (tool: typeof send) => {
      const call = { callId: "c", toolName: tool.name, input: {} };
      return (await permissions.check(call, tool, facts, { sent: {}, parsed: {} })).decision;
    };
    expect([await decide(send), await decide(wipe)]).toEqual([first, second]);
  },
);

test("a tool call waits durably for approval, and another worker runs the tool once it is approved", async () => {
  const script = [{ toolCalls: [{ name: "send", input: { to: "ann" } }] }, "Done."];
  const worker = new Agent({
    name: "worker",
    model: scriptedModel(script),
    tools: [send],
    permissions: humanApproval({ tools: ["send"], reason: "mail goes to customers" }),
  });
  const { runtime, open, events } = await setUp({ unknownPrice: "ignore" });
  const { runId } = await runtime.submit(worker, "Write to Ann");
  const asked = async () => (await events(runId)).find((event) => event.type === "approval_request");
  await until(async () => (await asked()) !== undefined);
  await runtime.close();
  const second = await open();
  second.register(worker);
  const request = await asked();
  expect(request?.data).toMatchObject({ toolName: "send", reason: "mail goes to customers" });
  const handle = await second.find(runId);
  await handle?.approve(request?.data.approvalId ?? "", { decision: "approved" });
  expect((await handle?.result())?.output).toBe("Done.");
  const ended = (await events(runId)).find((event) => event.type === "tool_execution_end");
  expect(ended?.data.result).toEqual(text("sent"));
});

test("humanApproval() asks the onAsk handler in the same process, and a denial of the handler becomes the tool's result", async () => {
  const worker = new Agent({
    name: "worker",
    model: scriptedModel([{ toolCalls: [{ name: "wipe", input: {} }] }, "Left it."]),
    tools: [wipe],
    permissions: humanApproval({ onAsk: () => ({ decision: "denied", reason: "not today" }) }),
  });
  const { runtime, events } = await setUp({ unknownPrice: "ignore" });
  const run = await runtime.submit(worker, "Wipe it");
  expect((await run.result()).output).toBe("Left it.");
  const ended = (await events(run.runId)).find((event) => event.type === "tool_execution_end");
  expect(ended?.data.result).toEqual({ ...text("[denied: not today]"), isError: true });
});
