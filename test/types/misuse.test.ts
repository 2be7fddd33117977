import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";

/** The declarations that every misuse starts with. */
const opening = [
  'import { Agent, openRuntime, tool, withSettings, type ToolContext } from "reeve";',
  'import type { Model, RunHandle, Runtime } from "reeve/kernel";',
  'import { handler, object, query, signal, update, workflow } from "reeve/workflow";',
  'import { z } from "zod";',
  "declare const agent: Agent;",
  "declare const model: Model;",
  "declare const run: RunHandle;",
  "declare const runtime: Runtime;",
  "declare const schema: z.ZodObject<{ town: z.ZodString }>;",
  'const base = { name: "t", description: "t", inputSchema: z.object({}) };',
  "interface Shop { readonly currency: string }",
  'const clerk = new Agent<Shop>({ name: "clerk", model });',
  'const order = workflow("order", { input: z.object({ cents: z.number() }) }, async () => null);',
  "void [order, handler, object, query, signal, update, workflow, Agent, openRuntime, tool, withSettings, agent, model, run, runtime, schema, base, clerk];",
  "export type Used = ToolContext;",
];

/** A line that must not compile, with the option, member or type that the compiler must name. */
const misuses: readonly (readonly [option: string, code: string])[] = [
  ["maxSteps", 'await agent.invoke("x", { maxSteps: 3 });'],
  ["signal", 'await agent.invoke("x", { signal: new AbortController() });'],
  ["signal", 'await agent.submit("x", { signal: new AbortController().signal });'],
  ["maxTokens", 'await agent.invoke("x", { settings: { maxTokens: 5 } });'],
  ["temperature", 'await agent.invoke("x", { settings: { temperature: "0" } });'],
  ["toolChoice", 'await agent.stream("x", { settings: { toolChoice: "any" } }).result();'],
  ["currency", 'await clerk.invoke("x", { context: { currency: 7 } });'],
  ["context", "runtime.register(clerk, { context: () => ({ balance: 1 }) });"],
  ["contxt", "runtime.register(clerk, { contxt: () => ({}) });"],
  ["instructions", 'new Agent({ name: "a", model, instructions: () => 7 });'],
  ["onApproval", 'await agent.invoke("x", { onApproval: "ask" });'],
  ["onApproval", 'await agent.submit("x", { onApproval: "return" });'],
  ["onApproval", 'agent.stream("x", { onApproval: "return" });'],
  ["timeoutWhileWaiting", 'await agent.invoke("x", { timeoutWhileWaiting: 5 });'],
  [
    "cron",
    'await runtime.schedules.create({ name: "s", agent, input: null, cron: "* * * * *", everyMs: 5_000 });',
  ],
  ["at", 'await runtime.schedules.create({ name: "s", agent, input: null });'],
  ["timezone", 'await runtime.schedules.create({ name: "s", agent, input: null, at: 5, timezone: "UTC" });'],
  ["overlap", 'await runtime.schedules.create({ name: "s", agent, input: null, at: 5, overlap: "wait" });'],
  ["partialObject", 'agent.stream("x").partialObject();'],
  ["onRestart", 'agent.stream("x").text({ onRestart: () => undefined });'],
  ["firstTokenMs", "await openRuntime({ modelTimeouts: { firstTokenMs: 60_000 } });"],
  ["Signals", 'await openRuntime({ closeOn: ["SIGFOO"] });'],
  ["prepareStep", 'new Agent({ name: "a", model, prepareStep: () => ({ activeTools: ["look"] }) });'],
  ["PrepareStep", 'new Agent({ name: "a", model, prepareStep: { turn: 1 } });'],
  ["stopWhen", 'new Agent({ name: "a", model, stopWhen: 5 });'],
  ["stopWhen", 'new Agent({ name: "a", model, stopWhen: () => "yes" });'],
  ["repairToolCall", 'new Agent({ name: "a", model, repairToolCall: true });'],
  ["system", 'new Agent({ name: "a", model, system: "x" });'],
  ["toolName", 'agent.asTool({ toolName: "ask" });'],
  ["sessionId", 'await agent.continue("chat-42", { sessionId: "chat-43" });'],
  ["execute", "tool(base);"],
  ["execute", 'tool({ ...base, clientSide: true, execute: () => "here" });'],
  ["timeoutMs", "tool({ ...base, clientSide: true, timeoutMs: 5 });"],
  ["returnDirect", 'tool({ ...base, returnDirect: "always", execute: () => 7 });'],
  ["isErr", 'await run.toolResult("call-1", "Lyon", { isErr: true });'],
  ["topP", 'withSettings(model, { topP: "high" });'],
  ["town", 'void (await (await agent.submit("x", { output: schema })).result()).output.town;'],
  ["output", 'void (await agent.invoke("x", { onApproval: "return" })).output;'],
  ["cents", 'await runtime.start(order, { cents: "5" });'],
  ["cents", 'await order.run({ cents: "5" });'],
  ["bornOn", 'workflow("w", async () => ({ bornOn: new Date() }));'],
  ["bornOn", 'workflow("w", async (ctx) => ctx.step("s", async () => ({ bornOn: new Date() })));'],
  ["price", 'workflow("w", { output: z.object({ price: z.string() }) }, async () => ({ price: 5 }));'],
  ["cents", 'await run.signal(signal("paid", z.object({ cents: z.number() })), { cents: "5" });'],
  ["cents", 'await run.update(update("pay", { input: z.object({ cents: z.number() }) }), { cents: "5" });'],
  [
    "done",
    'workflow("w", async (ctx) => ctx.publish(query("p", z.object({ done: z.number() })), { done: "5" }));',
  ],
  [
    "cents",
    'workflow("w", (ctx) => ctx.sendSignal("run_a", signal("paid", z.object({ cents: z.number() })), { cents: "5" }));',
  ],
  [
    "ok",
    'workflow("w", async (ctx) => void (await ctx.handleUpdate(update("u", { output: z.object({ ok: z.boolean() }) }), async () => ({ ok: "5" }))));',
  ],
  ["bornOn", 'object("o", { get: async () => ({ bornOn: new Date() }) });'],
  [
    "at",
    'object("o", { state: z.number().default(0) }, { get: async (ctx) => ({ at: new Date(ctx.state) }) });',
  ],
  [
    "bornOn",
    'workflow("w", { output: z.object({ bornOn: z.date() }) }, async () => ({ bornOn: new Date() }));',
  ],
  ["bornOn", "handler({ output: z.object({ bornOn: z.date() }) }, async () => ({ bornOn: new Date() }));"],
  ["inputs", 'workflow("w", { inputs: z.object({}) }, async () => null);'],
];

/** As the compiler options of a program that imports reeve. */
const config = {
  extends: "../tsconfig.base.json",
  compilerOptions: {
    noEmit: true,
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: false,
    skipLibCheck: true,
    types: ["node"],
  },
  include: ["./*.ts"],
  references: ["src/entries", "src/assembly", "src/agents", "src/capabilities", "src/kernel"].map((path) => ({
    path: `../${path}`,
  })),
};

/** Compiles each misuse as a module. Returns for each what the compiler says, and the source text that it points at. */
async function complaints(): Promise<readonly string[]> {
  const folder = await mkdtemp(join(repository, ".misuse-"));
  try {
    // The folder needs a package of its own: inside the package reeve, the name "reeve" would resolve to the package itself.
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
    for (const [index, [, code]] of misuses.entries())
      await writeFile(join(folder, `${index}.ts`), [...opening, code, ""].join("\n"));
    const tsc = join(repository, "node_modules/typescript/bin/tsc");
    const { stdout } = await runNode([tsc, "-b", folder, "--pretty", "false"], folder);
    const said = misuses.map(() => "");
    let current = -1;
    for (const line of stdout.split("\n")) {
      const [, file, row = "", column = ""] = /^(\d+)\.ts\((\d+),(\d+)\)/u.exec(line) ?? [];
      if (file !== undefined) {
        current = Number(file);
        const source = [...opening, misuses[current]?.[1] ?? ""][Number(row) - 1] ?? "";
        said[current] += `at ${/^\w+/u.exec(source.slice(Number(column) - 1))?.[0] ?? ""}: `;
      }
      if (current >= 0) said[current] += `${line}\n`;
    }
    return said;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("a wrong use of a call, a result or a tool is a compile error that names the option", async () => {
  const said = await complaints();
  const unnamed = misuses.flatMap(([option, code], index) =>
    said[index]?.includes(option) === true ? [] : [`${code} -> ${said[index] || "compiles"}`],
  );
  expect(unnamed).toEqual([]);
});
