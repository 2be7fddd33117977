import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { formatAgentId, type HostedAgent } from "../../src/kernel/index.ts";
import { tool } from "../../src/entries/index.ts";
import type { StoreAddress } from "../../src/runtime/index.ts";

/** A program that opens a runtime and, depending on its first argument, forgets to close it. */
const [, , what = "", store = "memory:"] = process.argv;
const agent: HostedAgent = { id: formatAgentId({ name: "clerk" }), run: async (ctx) => ctx.input };
const waiting: HostedAgent = {
  id: formatAgentId({ name: "waiting" }),
  run: (ctx) => ctx.waitForSignal("never"),
};
const { promise: started, resolve: start } = Promise.withResolvers<void>();
const stuck = tool({
  name: "stuck",
  description: "Never answers",
  inputSchema: { type: "object" },
  timeoutMs: 600_000,
  execute: () => {
    start();
    return new Promise<string>(() => undefined);
  },
});
const busy: HostedAgent = {
  id: formatAgentId({ name: "busy" }),
  tools: [stuck],
  run: async (ctx) => (await ctx.tool({ callId: "1", toolName: "stuck", input: {} })).isError,
};
const keepAlive = { stays: true, ends: false }[what];
const runtime = await createRuntime({
  store: store as StoreAddress,
  ...(keepAlive !== undefined && { keepAlive }),
  closeGraceMs: 0,
  suspendAfterMs: 10,
  pollMs: 50,
});
if (what === "worker") runtime.register(agent);
else if (what === "interrupts") {
  await runtime.submit(busy, null);
  await started;
  await runtime.close();
} else if (what === "waits") void (await runtime.submit(waiting, null)).result();
else {
  const { output } = await (await runtime.submit(agent, "filed")).result();
  process.stdout.write(`${JSON.stringify(output)}\n`);
}
if (what === "closes") await runtime.close();
setTimeout(() => process.stdout.write("alive\n"), 1_600).unref();
