/** Type tests of the run's context, checked by the compiler and never run. */
import {
  Agent,
  OrchestratorAgent,
  tool,
  toolHooks,
  type Guardrail,
  type RunFacts,
  type ToolContext,
} from "../../src/entries/index.ts";
import type { Model, Runtime, Tool } from "../../src/kernel/index.ts";

interface Shop {
  readonly language: string;
}

interface Bank {
  readonly balance: number;
}

declare const model: Model;
declare const runtime: Runtime;
declare const plain: Tool;
const inputSchema = { type: "object", properties: {} } as const;
const shopTool = tool({
  name: "shop",
  description: "x",
  inputSchema,
  execute: (_, { context, facts }: ToolContext<Shop>) => context.language + facts.context.language,
});
const shopRail: Guardrail<Shop> = {
  name: "rail",
  onInput: (_, { facts }) => ({ decision: "block", reason: facts.context.language }),
};

/** The context of an agent follows from its tools or instructions, or is declared. */
export async function contexts(): Promise<void> {
  const inferred = new Agent({ name: "a", model, tools: [shopTool, plain] });
  await inferred.invoke("x", { context: { language: "en" } });
  const told = new Agent({
    name: "a",
    model,
    instructions: ({ context }: RunFacts<Shop>) => context.language,
  });
  await told.stream("x", { context: { language: "en" } }).result();
  const declared = new Agent<Shop & Bank>({
    name: "a",
    model,
    tools: [shopTool, plain],
    instructions: ({ context, userId, metadata }) =>
      `${context.balance} ${userId} ${Object.keys(metadata).join()}`,
    guardrails: [shopRail],
  });
  await declared.submit("x", { context: { language: "en", balance: 1 } });
  await declared.runUntil("x", { until: () => true, context: { language: "en", balance: 1 } });
  runtime.register(declared, { context: async () => ({ language: "en", balance: 1 }) });
  await runtime.submit(declared, "x", { context: { language: "en", balance: 1 } });
  const lead = new OrchestratorAgent<Shop>({ name: "l", model, subAgents: [inferred, { agent: declared }] });
  await lead.invoke("x", { context: { language: "en" } });
  toolHooks().onPreTool((_call, facts: RunFacts<Shop>) => void facts.context.language);
  const any: Agent = declared;
  await any.invoke("x");

  // @ts-expect-error: `context` has a wrong type
  await inferred.invoke("x", { context: { language: 1 } });
  // @ts-expect-error: `context` lacks balance
  await declared.stream("x", { context: { language: "en" } }).result();
  // @ts-expect-error: `context` lacks balance
  await declared.submit("x", { context: { language: "en" } });
  // @ts-expect-error: the factory returns no Shop
  runtime.register(inferred, { context: () => ({ balance: 1 }) });
  // @ts-expect-error: register has no option `contxt`
  runtime.register(inferred, { contxt: () => ({ language: "en" }) });
  // @ts-expect-error: `context` has a wrong type
  await runtime.submit(inferred, "x", { context: { balance: 1 } });
  // @ts-expect-error: `tools` contains a tool that needs a Shop
  void new Agent<Bank>({ name: "a", model, tools: [shopTool] });
  // @ts-expect-error: `instructions` reads what the context does not have
  void new Agent<Bank>({ name: "a", model, instructions: ({ context }) => context.language });
  // @ts-expect-error: `instructions` returns no text
  void new Agent<Bank>({ name: "a", model, instructions: ({ context }) => context.balance });
}
