import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import * as reeve from "../../src/entries/index.ts";
import { formatAgentId, Transcript, type HostedAgent, type RunContext } from "../../src/kernel/index.ts";
import { openMemory } from "../../src/assembly/memory.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { refusal, type Untyped } from "./refused-option.ts";

const { Agent, tool } = reeve;
const agent = new Agent({ name: "worker", model: scriptedModel(["Done."]) });

/** A call of a context with a misspelt option, and the option that the error must name. */
const inRuns: readonly (readonly [name: string, call: (ctx: RunContext) => unknown, nearest: string])[] = [
  ["waitForSignal", (ctx) => ctx.waitForSignal("go", { timeout: 1 } as object), "timeoutMs"],
  ["ask", (ctx) => ctx.ask(formatAgentId({ name: "other" }), "?", { timeout: 1 } as object), "timeoutMs"],
  ["step", (ctx) => ctx.step("pay", async () => 1, { inputs: 1 } as object), "input"],
  ["steering", (ctx) => ctx.steering({ Mode: "all" } as object), "mode"],
  ["followUps", (ctx) => ctx.followUps({ modes: "all" } as object), "mode"],
  ["tools", (ctx) => ctx.tools([], { onresult: () => {} } as object), "onResult"],
  ["parallel", (ctx) => ctx.parallel({}, { stopOnFaults: true } as object), "stopOnFault"],
  [
    "llm",
    (ctx) => ctx.llm({ transcript: Transcript.of([]), max_output_tokens: 1 } as never),
    "maxOutputTokens",
  ],
  ["approval", (ctx) => ctx.approval({ ...question, Kind: "elicitation" } as never), "kind"],
  ["report", async (ctx) => ctx.report({ outputs: 1 } as object), "output"],
  ["spawn", (ctx) => ctx.spawn(formatAgentId({ name: "other" }), "?", { Budget: {} } as object), "budget"],
];
const question = { toolName: "ask", callId: "1", input: "?", reason: "because" };

test.each(inRuns)("ctx.%s() refuses a misspelt option", async (name, call, nearest) => {
  const runtime = await reeve.openRuntime();
  const careless: HostedAgent = {
    id: formatAgentId({ name: "careless" }),
    run: async (ctx) => void (await call(ctx)),
  };
  const { error } = await (await runtime.submit(careless, null)).result();
  await runtime.close();
  expect(error).toEqual(refusal(nearest));
  expect(error?.message).toContain(` of ctx.${name}(): `);
});

describe("misspelt options of a runtime and its handles", () => {
  test("a runtime and its handles refuse misspelt options", async () => {
    const runtime = await reeve.openRuntime();
    onTestFinished(() => runtime.close());
    const run = await runtime.submit(agent, "Go.");
    expect(() => run.events({ from_seq: 1 } as object)).toThrow(refusal("fromSeq"));
    await expect(run.fork({ at: 0, run_id: "run_2" } as never)).rejects.toThrow(refusal("runId"));
    await expect(run.approve("a", { decision: "approved", Input: {} } as never)).rejects.toThrow(
      refusal("input"),
    );
    await expect(runtime.collect({ endedbefore: 0 } as never)).rejects.toThrow(refusal("endedBefore"));
    await run.result();
  });

  test("register() refuses a misspelt option", async () => {
    const runtime = await reeve.openRuntime();
    onTestFinished(() => runtime.close());
    const register = runtime.register.bind(runtime) as Untyped;
    register(agent, {});
    expect(() => register(agent, { contexts: () => ({}) })).toThrow(
      'unknown option "contexts" of register(): use "context"',
    );
  });

  test("the options of the audit log are refused if they are misspelt", async () => {
    const log = reeve.auditLog(reeve.memoryStore({ hash: reeve.sha256 }));
    const read = async () => {
      for await (const entry of log.read("run_1", { outside_only: true } as object)) return entry;
      return undefined;
    };
    await expect(read()).rejects.toThrow(refusal("outsideOnly"));
  });
});

test("a decision of an approval handler with a misspelt field denies the call", async () => {
  const critical = tool({
    name: "wipe",
    description: "",
    inputSchema: {},
    risk: "critical",
    execute: () => "wiped",
  });
  const wiper = new Agent({
    name: "wiper",
    model: scriptedModel([
      { toolCalls: [{ name: "wipe", input: {} }] },
      ({ messages }) => JSON.stringify(messages.at(-1)),
    ]),
    tools: [critical],
    permissions: reeve.permissions({
      onAsk: () => ({ decision: "approved", inputs: { only: "cache" } }) as never,
    }),
  });
  const { output } = await wiper.invoke("Wipe.");
  expect(output).toContain('use \\"input\\"');
  expect(output).not.toContain("wiped");
});

test("a memory refuses a misspelt query, which would return or delete too much", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-options-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const memory = await openMemory({ path: join(folder, "memory.db") });
  const ann = { userId: "ann" };
  await expect(memory.recall(ann, { text: "x", Limit: 1 } as never)).rejects.toThrow(refusal("limit"));
  await expect(memory.forget(ann, { id: ["x"] } as never)).rejects.toThrow(refusal("ids"));
  await memory.close();
});
