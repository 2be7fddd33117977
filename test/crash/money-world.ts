import { createHash } from "node:crypto";
import { composeGate, summarizeIn, withGuardrailModels } from "../../src/agents/index.ts";
import {
  MiddlewarePipeline,
  modelFallback,
  type Layer,
} from "../../src/agents/interception/middleware/index.ts";
import { llmJudge } from "../../src/assembly/guardrails.ts";
import { fallback } from "../../src/capabilities/index.ts";
import {
  formatAgentId,
  formatRunId,
  messageText,
  priorities,
  toolCallsOf,
  toolMessage,
  Transcript,
  userMessage,
  type HostedAgent,
  type AssistantPart,
  type ChatMessage,
  type JsonValue,
  type LlmReply,
  type Model,
  type ModelPrice,
  type ModelResponse,
  type RunContext,
  type RunId,
  type TaskHandle,
  type ToolResultPart,
} from "../../src/kernel/index.ts";
import { getRunContext } from "../../src/runtime/index.ts";
import type { Answering, ServedAnswer } from "../../src/testing/index.ts";
import { callServer, servedTool, type ServerAddress } from "../../src/testing/served-call.ts";

export const price: ModelPrice = { inputUsd: 10e-6, outputUsd: 40e-6, cacheWriteUsd: 12.5e-6 };
export const maxCostUsd = 0.1;
const mostOutput = 240;

export function moneyRun(batch: number, index: number): RunId {
  return formatRunId(`money-${batch}-${index}`);
}

interface Asked {
  readonly messages: readonly ChatMessage[];
  readonly maxOutputTokens: number;
}

/** A model whose provider bills the input and the output up to the output limit of the request. */
function billingModel(server: ServerAddress, modelId = "billing"): Model {
  const generate: Model["generate"] = async ({ messages, maxOutputTokens = 0 }, { signal } = {}) => {
    const body = { messages, maxOutputTokens } as unknown as JsonValue;
    const scope = getRunContext()?.runId ?? "";
    const { answer } = await callServer(server, { name: "model", scope, body, ...(signal && { signal }) });
    return answer as unknown as ModelResponse;
  };
  return {
    provider: "served",
    modelId,
    maxOutputTokens: mostOutput,
    generate,
    async *stream(request, options) {
      yield { type: "finish", ...(await generate(request, options)) };
    },
  };
}

/** A middleware layer that repeats about a fifth of the model calls. */
const fussy: Layer = {
  name: "fussy",
  chat: async (context, next) => {
    await next();
    const said = context.result === undefined ? "" : messageText(context.result.message);
    if (numberOf(`fussy ${said}`, 5) === 0) await next();
  },
};

/**
 * All callers of a model besides the agent: middleware that repeats calls, two kinds of fallback, and a judge before
 * tool calls.
 */
function layered(server: ServerAddress): Pick<HostedAgent, "models" | "callPath"> {
  const layers = [fussy, modelFallback({ models: [billingModel(server, "last")] })];
  const guardrails = [llmJudge({ criteria: "Dig.", stages: { tool_call: "block" } })];
  const gate = composeGate({ guardrails });
  const main = fallback([billingModel(server), billingModel(server, "second")]);
  return {
    models: withGuardrailModels({ main }, guardrails),
    callPath: new MiddlewarePipeline(layers).callPath(gate && { tool: gate }) ?? {},
  };
}

/**
 * A lead agent that calls `dig` several times in parallel and spawns sub-agents that dig too, with priorities that the
 * model chooses.
 */
export function moneyAgents(server: ServerAddress): HostedAgent {
  const shared = { ...layered(server), tools: [servedTool(server, "dig")] };
  const hand: HostedAgent = {
    id: formatAgentId({ name: "hand" }),
    ...shared,
    run: (ctx) => work(ctx, `hand ${JSON.stringify(ctx.input)}`),
  };
  return {
    id: formatAgentId({ name: "lead" }),
    ...shared,
    subAgents: [hand],
    run: (ctx) => work(ctx, `lead ${JSON.stringify(ctx.input)}`, hand),
  };
}

async function work(ctx: RunContext, prompt: string, hand?: HostedAgent): Promise<string> {
  let transcript = Transcript.of([userMessage(prompt)]);
  const summarize = summarizeIn(ctx);
  for (;;) {
    if (transcript.length === 5) {
      const [summary] = await summarize([{ messages: transcript.slice(1), previous: null, part: "history" }]);
      transcript = transcript.append(userMessage(`so far: ${summary}`));
    }
    const { message } = await ctx.llm({ transcript });
    const calls = toolCallsOf(message);
    if (calls.length === 0) return messageText(message);
    const digs = calls.filter(({ toolName }) => toolName === "dig");
    const results = digs.length === 0 ? [] : await ctx.tools(digs);
    const parts = digs.map(({ callId, toolName }, index): ToolResultPart => {
      const { output, isError } = results[index] ?? { output: { type: "text", text: "" }, isError: true };
      return { type: "tool_result", callId, toolName, output, isError };
    });
    const hired: { readonly callId: string; readonly handle: TaskHandle }[] = [];
    for (const { callId, toolName, input } of calls) {
      if (toolName !== "hire" || hand === undefined) continue;
      const { rank } = input as { readonly rank: number };
      const outcome = await ctx.spawn(hand.id, callId, { priority: priorities[rank % 5] ?? 2 });
      if (outcome.kind === "spawned") hired.push({ callId, handle: outcome.handle });
      else parts.push(textResult(callId, outcome.reason));
    }
    const ends = hired.length === 0 ? [] : await ctx.joinAll(hired.map(({ handle }) => handle));
    for (const [index, { callId }] of hired.entries())
      parts.push(textResult(callId, ends[index]?.failure?.code ?? "done"));
    transcript = transcript.append(message, toolMessage(parts));
  }
}

function textResult(callId: string, text: string): ToolResultPart {
  return { type: "tool_result", callId, toolName: "hire", output: { type: "text", text }, isError: false };
}

/** Answers the calls of one batch. Equal calls get equal answers, but the first attempts of some calls fail. */
export function moneyWorld(): Answering {
  const tries = new Map<string, number>();
  return ({ name, key, body, receipt }) => {
    if (name !== "model") return { body: { dug: receipt.slice(0, 6) } };
    const before = tries.get(key) ?? 0;
    tries.set(key, before + 1);
    const answer = modelAnswer(body as unknown as Asked, receipt);
    const luck = numberOf(`luck ${receipt} ${before}`, 100);
    // A call refused before its body is not billed. A call cut after the work was done is billed, and its caller gets
    // no answer.
    if (before < 2 && luck < 8) return { body: null, fail: luck < 4 ? 503 : 429 };
    if (before < 2 && luck < 16) return { ...answer, fail: "cut" };
    return answer;
  };
}

function modelAnswer({ messages, maxOutputTokens }: Asked, receipt: string): ServedAnswer {
  const asked = JSON.stringify(messages);
  const [judges, sumsUp] = [asked.includes("Your verdict?"), asked.includes("<conversation>")];
  const lead = JSON.stringify(messages[0]).includes("lead ");
  const wanted = numberOf(`calls ${receipt}`, 4);
  const goesOn = messages.length < (lead ? 9 : 5) && wanted > 0 && !judges && !sumsUp;
  const calls = Array.from({ length: goesOn ? wanted : 0 }, (_, index) => {
    const hires = lead && numberOf(`hire ${receipt} ${index}`, 3) === 0;
    const input = hires ? { rank: numberOf(`rank ${receipt} ${index}`, 5) } : { at: index };
    return { callId: `call_${messages.length}_${index}`, toolName: hires ? "hire" : "dig", input };
  });
  const content: AssistantPart[] = [
    { type: "text", text: judges ? verdict(receipt) : thought(receipt) },
    ...calls.map((call) => ({ type: "tool_call" as const, ...call })),
  ];
  const inputTokens = messages.reduce((sum, message) => sum + tokensOf(message), 0);
  const outputTokens = Math.min(maxOutputTokens, 1 + numberOf(`out ${receipt}`, mostOutput));
  const cacheWriteTokens = numberOf(`cache ${receipt}`, inputTokens + 1);
  const usage = { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens, reasoningTokens: 0 };
  const stopReason: LlmReply["stopReason"] =
    outputTokens === maxOutputTokens ? "length" : calls.length > 0 ? "tool_calls" : "stop";
  const { inputUsd, outputUsd, cacheWriteUsd = inputUsd } = price;
  const usd =
    (inputTokens - cacheWriteTokens) * inputUsd + cacheWriteTokens * cacheWriteUsd + outputTokens * outputUsd;
  const message = { role: "assistant", content };
  return {
    body: { message, stopReason, usage } as unknown as JsonValue,
    bill: { tokens: inputTokens + outputTokens, usd },
  };
}

function thought(receipt: string): string {
  return `thought ${receipt}`.repeat(1 + numberOf(`text ${receipt}`, 3));
}

/** Verdict of the judge. About a third of the verdicts are invalid. */
function verdict(receipt: string): string {
  return ['{"verdict":"accept"}', '{"verdict":"reject"}', "hm"][numberOf(`verdict ${receipt}`, 3)] ?? "";
}

/** Number of tokens of a message. It depends on the message alone and is at most one per byte. */
function tokensOf(message: ChatMessage): number {
  const said =
    message.role === "system"
      ? [message.content]
      : message.content.map((part) => JSON.stringify(textOf(part)));
  const bytes = said.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.floor((bytes * (20 + numberOf(said.join(" "), 81))) / 100);
}

function textOf(part: Exclude<ChatMessage, { role: "system" }>["content"][number]): unknown {
  if (part.type === "text" || part.type === "reasoning") return part.text;
  if (part.type === "tool_call") return part.input;
  if (part.type === "tool_result") return part.output.type === "text" ? part.output.text : part.output;
  return "";
}

/** A pseudo-random number from 0 to `below` - 1 that depends on the text alone. */
export function numberOf(text: string, below: number): number {
  return createHash("sha256").update(text).digest().readUInt32BE(0) % below;
}
