/** Type tests, checked by the compiler and never run. Each `@ts-expect-error` precedes a line that must not compile. */
import { z } from "zod";
import { Agent, hasToolCall, tool, type AgentOptions } from "../../src/entries/index.ts";
import type { RunHandle } from "../../src/kernel/index.ts";

declare const agent: Agent;
declare const run: RunHandle;

/** `asTool` accepts its own options only. */
export function asTool(): Agent {
  const lead: AgentOptions = {
    name: "lead",
    tools: [agent.asTool(), agent.asTool({ name: "ask", budget: { maxTurns: 2 } })],
  };
  // @ts-expect-error: the option is `name`
  agent.asTool({ toolName: "ask" });
  // @ts-expect-error: `needsApproval` is a boolean
  agent.asTool({ needsApproval: "yes" });
  return new Agent(lead);
}

/** `continue` takes the session as its argument, and its output has the type of the schema. */
export async function continued(): Promise<string> {
  const { output } = await agent.continue("chat-42", { timeoutMs: 5 });
  const typed = await agent.continue("chat-42", { output: z.object({ town: z.string() }) });
  // @ts-expect-error: `sessionId` is the first argument
  await agent.continue("chat-42", { sessionId: "chat-43" });
  // @ts-expect-error: `continue` is `true`
  await agent.invoke({ continue: false }, { sessionId: "chat-42" });
  return typed.status === "completed" ? typed.output.town : output;
}

/** A client-side tool has a schema and no body. */
export async function clientSide(): Promise<void> {
  const base = { name: "locate", description: "Locates.", inputSchema: z.object({ exact: z.boolean() }) };
  tool({ ...base, clientSide: true, needsApproval: ({ exact }) => exact });
  tool({ ...base, execute: ({ exact }) => (exact ? "here" : "there") });
  // @ts-expect-error: `execute` is missing
  tool(base);
  // @ts-expect-error: a client-side tool has no `execute`
  tool({ ...base, clientSide: true, execute: () => "here" });
  // @ts-expect-error: a client-side tool has no `timeoutMs`
  tool({ ...base, clientSide: true, timeoutMs: 5 });
  await run.toolResult("call-1", { town: "Lyon" }, { isError: false });
  // @ts-expect-error: a result is JSON
  await run.toolResult("call-1", () => "Lyon");
  // @ts-expect-error: the option is `isError`
  await run.toolResult("call-1", "Lyon", { error: true });
}

/** `prepareStep` and `stopWhen` have typed turns and results. */
export const controlled: readonly Omit<AgentOptions, "name">[] = [
  { prepareStep: ({ turn, messages }) => ({ messages: [`${turn} of ${messages.length}`], tools: ["look"] }) },
  { prepareStep: () => undefined, stopWhen: hasToolCall("look", "finish") },
  { stopWhen: [({ turn }) => turn > 3, async ({ usage }) => usage.outputTokens > 100] },
  // @ts-expect-error: the field is `tools`
  { prepareStep: () => ({ activeTools: ["look"] }) },
  // @ts-expect-error: `role` is a text
  { prepareStep: () => ({ role: 7 }) },
  // @ts-expect-error: `stopWhen` is a function or a list of functions
  { stopWhen: 5 },
  // @ts-expect-error: a condition of `stopWhen` returns a boolean
  { stopWhen: () => "yes" },
];

/** `returnDirect` is a boolean. */
export function returnDirect(): void {
  const base = { name: "price", description: "Price.", inputSchema: z.object({}), execute: () => 7 };
  tool({ ...base, returnDirect: true });
  // @ts-expect-error: `returnDirect` is a boolean
  tool({ ...base, returnDirect: "always" });
}

/** `repairToolCall` receives the call and returns corrected parts of it. */
export const repaired: readonly Omit<AgentOptions, "name">[] = [
  { repairToolCall: ({ call, tools }) => ({ toolName: tools[0]?.name ?? call.toolName }) },
  { repairToolCall: async ({ problem }) => (problem === "" ? undefined : { input: { a: 1 } }) },
  // @ts-expect-error: the field is `input`
  { repairToolCall: () => ({ args: {} }) },
  // @ts-expect-error: `repairToolCall` is a function
  { repairToolCall: true },
];
