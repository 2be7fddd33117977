import { expect, test } from "vitest";
import { humanApproval, type HumanApprovalOptions } from "../../../src/agents/index.ts";
import { agent, setUp, simpleTool, text, until } from "../../runtime/bench-runtime.ts";
import { runScene } from "./contexts.ts";

const send = simpleTool({ name: "send", execute: async () => text("sent") });
const wipe = {
  ...simpleTool({ name: "wipe", execute: async () => text("wiped") }),
  risk: "critical",
} as const;

test.for<[HumanApprovalOptions, string, string]>([
  [{}, "allow", "ask"],
  [{ tools: ["send"] }, "ask", "allow"],
  [{ tools: () => true }, "ask", "ask"],
])("%o: send is %s, wipe is %s", async ([options, first, second]) => {
  const permissions = humanApproval(options);
  const { facts } = runScene().context;
  const decide = async (tool: typeof send) =>
    (await permissions.check({ callId: "c", toolName: tool.name, input: {} }, tool, facts)).decision;
  expect([await decide(send), await decide(wipe)]).toEqual([first, second]);
});

test("behind the gate it is a durable question: another worker goes on when the answer comes", async () => {
  const permissions = humanApproval({ tools: ["send"], reason: "mail goes to customers" });
  const worker = agent(
    "worker",
    async (ctx) => {
      const { output } = await ctx.tool({ callId: "c", toolName: "send", input: { to: "ann" } });
      return output.type === "text" ? output.text : "";
    },
    {
      tools: [send],
      callPath: {
        gate: {
          before: async ({ call, tool, facts }) => {
            const decision = await permissions.check(call, tool, facts);
            return decision.decision === "allow" ? decision : { ...decision, by: "human-approval" };
          },
          after: async (_call, result) => result,
        },
      },
    },
  );
  const { runtime, open, events } = await setUp();
  const { runId } = await runtime.submit(worker, null);
  const asked = async () => (await events(runId)).find((event) => event.type === "approval_request");
  await until(async () => (await asked()) !== undefined);
  await runtime.close();
  const second = await open();
  second.register(worker);
  const request = await asked();
  expect(request?.data).toMatchObject({ toolName: "send", reason: "mail goes to customers" });
  const handle = await second.find(runId);
  if (request?.type === "approval_request")
    await handle?.approve(request.data.approvalId, { decision: "approved" });
  expect((await handle?.result())?.output).toBe("sent");
});
