/** Type tests, checked by the compiler and never run. Each `@ts-expect-error` precedes a line that must not compile. */
import { z } from "zod";
import {
  auditLog,
  openRuntime,
  Sequential,
  withSettings,
  type Agent,
  type AgentOptions,
  type InvokeOptions,
  type PendingApproval,
  type RunUntilOptions,
  type StreamOptions,
} from "../../src/entries/index.ts";
import {
  userMessage,
  type ChatMessage,
  type FilePart,
  type FinishReason,
  type Model,
  type RunHandle,
  type RunStep,
  type RunToolCall,
  type Runtime,
  type Schema,
  type Store,
} from "../../src/kernel/index.ts";

declare const agent: Agent;
declare const runtime: Runtime;
declare const run: RunHandle;
declare const store: Store;
const place = z.object({ town: z.string() });

/** With options of the exported type and without a schema, the output is a string. */
export async function apart(options: InvokeOptions, more?: StreamOptions): Promise<string> {
  const made: InvokeOptions = { timeoutMs: 5, sessionId: "chat-42" };
  const answers: readonly string[] = [
    (await agent.invoke("x", made)).output,
    (await agent.invoke("x", options)).output,
    (await agent.invoke("x", { ...made, output: undefined })).output,
    (await agent.stream("x", more).result()).output,
  ];
  return answers.join("");
}

/** With a schema, given inline or in separate options, the output of a completed run is the parsed value. */
export async function formed(options: InvokeOptions<typeof place> & { readonly output: typeof place }) {
  for (const result of [
    await agent.invoke("x", { output: place }),
    await agent.invoke("x", options),
    await agent.stream("x", { output: place, cancelOnBreak: true }).result(),
  ]) {
    const { output } = result;
    const text: string = result.status === "completed" ? result.output.town : result.output;
    // @ts-expect-error: the output is the parsed value only if the run completed
    output.town satisfies string;
    text satisfies string;
  }
}

/** With an optional schema, the output is a string or the parsed value. */
export async function perhaps(schema: typeof place | undefined, options?: InvokeOptions<typeof place>) {
  for (const { output } of [
    await agent.invoke("x", { output: schema }),
    await agent.invoke("x", options),
    await agent.stream("x", { output: schema }).result(),
  ]) {
    if (typeof output === "string") output satisfies string;
    else output.town satisfies string;
    // @ts-expect-error: the output may be a string
    output.town satisfies string;
  }
}

/** A generic function can pass on options with any schema. */
export async function handedOn<Source extends Schema>(options: InvokeOptions<Source>): Promise<unknown> {
  return (await agent.invoke("x", options)).output;
}

/** Ids are accepted as strings and returned as branded types. */
export async function ids(): Promise<void> {
  const until: RunUntilOptions = { until: () => true, runId: "run_goal", sessionId: "chat-42" };
  const { sessionId, runId } = await agent.runUntil("x", until);
  await agent.invoke("x", { sessionId, runId });
  await agent.resume("run_7f");
  await agent.signal("run_7f", "go");
  await runtime.submit(agent, "x", { sessionId: "chat-42", runId: "run_7f" });
  await runtime.find("run_7f");
  await runtime.list({ sessionId: "chat-42", agentId: "lead" });
  await run.topUp({ maxTokens: 1 }, "t1");
  await run.fork({ at: 3, runId: "run_8a" });
  await auditLog(store).verify("run_7f");
  // @ts-expect-error: an id is not a number
  await agent.resume(7);
  // @ts-expect-error: an id is not a number
  await agent.invoke("x", { sessionId: 42 });
}

/** A flow can be assigned to `Agent`, also if its output has a schema. */
export const flow: Agent = new Sequential({ name: "flow", steps: [agent] });

/** A call takes a signal and settings, and a wrong one is reported at its name. */
export async function called(): Promise<void> {
  const { signal } = new AbortController();
  await agent.invoke("x", { signal, settings: { temperature: 0, toolChoice: { toolName: "look" } } });
  await agent.stream("x", { signal, settings: { seed: 1 } }).result();
  await agent.runUntil("x", { signal, until: () => true });
  await runtime.submit(agent, "x", { settings: { topK: 40 } });
  // @ts-expect-error: a controller is not a signal
  await agent.invoke("x", { signal: new AbortController() });
  // @ts-expect-error: the option is called maxOutputTokens
  await agent.invoke("x", { settings: { maxTokens: 5 } });
  // @ts-expect-error: a temperature is a number
  await agent.invoke("x", { settings: { temperature: "0" } });
  // @ts-expect-error: a tool choice has no value "any"
  await agent.stream("x", { settings: { toolChoice: "any" } }).result();
  // @ts-expect-error: a submitted run is cancelled by its handle
  await agent.submit("x", { signal });
}

/** A call takes messages of the roles user, assistant and tool. */
export async function conversed(): Promise<void> {
  await agent.invoke([{ role: "user", content: "Hi" }]);
  await agent
    .stream([
      { role: "assistant", content: "Hi" },
      { role: "user", content: "Hi" },
    ])
    .result();
  await agent.submit([{ role: "user", content: [{ type: "text", text: "Hi" }] }]);
  // @ts-expect-error: instructions are an option of the agent, not a system message
  await agent.invoke([{ role: "system", content: "Hi" }]);
  // @ts-expect-error: the results of calls are parts
  await agent.invoke([{ role: "tool", content: "Hi" }]);
}

/** Timeouts of model calls are options of the runtime and of an agent; each one has a name. */
export async function timeouts(): Promise<void> {
  const modelTimeouts = { firstChunkMs: 60_000, chunkMs: null, totalMs: 600_000 };
  await openRuntime({ modelTimeouts });
  agent.with({ modelTimeouts: { totalMs: 600_000 } });
  // @ts-expect-error: modelTimeouts has no option firstTokenMs
  await openRuntime({ modelTimeouts: { firstTokenMs: 60_000 } });
  // @ts-expect-error: modelTimeouts.chunkMs is a number of milliseconds or null
  agent.with({ modelTimeouts: { chunkMs: "1s" } });
}

/** `text()` yields strings; `partialObject()` yields partial values and needs the option `output`. */
export async function streamed(schema: typeof place): Promise<void> {
  for await (const text of agent.stream("x").text({ onReset: (valid) => valid.trim() }))
    text satisfies string;
  for await (const value of agent.stream("x", { output: schema }).partialObject()) {
    value.town satisfies string | undefined;
    // @ts-expect-error: the town may not have arrived yet
    value.town satisfies string;
    // @ts-expect-error: the schema has no such member
    value.city satisfies unknown;
  }
  // @ts-expect-error: an argument for "missingOptionOutput" was not provided
  agent.stream("x").partialObject();
  // @ts-expect-error: text() has no option onRestart
  agent.stream("x").text({ onRestart: () => undefined });
}

/** The result has typed messages, steps and tool calls. */
export async function history(): Promise<void> {
  const result = await agent.invoke("x");
  result.messages satisfies readonly ChatMessage[];
  result.steps satisfies readonly RunStep[];
  result.toolCalls satisfies readonly RunToolCall[];
  result.steps[0]?.toolCalls satisfies readonly RunToolCall[] | undefined;
  result.reasoning satisfies string;
  result.files satisfies readonly FilePart[];
  result.pendingApprovals satisfies readonly PendingApproval[];
  result.finishReason satisfies FinishReason | null;
  // @ts-expect-error: the messages of a result cannot be changed
  result.messages.push(userMessage("x"));
}

/** The type of the output survives `submit().result()`. */
export async function submitted(schema: typeof place): Promise<void> {
  (await (await agent.submit("x")).result()).output satisfies string;
  const handle = await agent.submit("x", { output: schema, streaming: true });
  const result = await handle.as("ann").result();
  const text: string = result.status === "completed" ? result.output.town : result.output;
  text satisfies string;
  // @ts-expect-error: the output is the parsed value only if the run completed
  result.output.town satisfies string;
  handle satisfies RunHandle<unknown>;
  // @ts-expect-error: submit() has no option onApproval
  await agent.submit("x", { onApproval: "return" });
}

/** `onApproval: "return"` adds a waiting result; a handler does not. */
export async function approvals(schema: typeof place): Promise<void> {
  const result = await agent.invoke("x", { onApproval: "return", output: schema });
  if (result.status === "waiting") {
    result.pendingApprovals satisfies readonly PendingApproval[];
    const end = await result.run.result();
    if (end.status === "completed") end.output.town satisfies string;
    // @ts-expect-error: a run that waits has no output yet
    result.output satisfies unknown;
  } else if (result.status === "completed") result.output.town satisfies string;
  const plain = await agent.invoke("x", { onApproval: "return" });
  if (plain.status !== "waiting") plain.output satisfies string;
  // @ts-expect-error: the run may wait, so the output is not known to exist
  plain.output satisfies string;
  const handled = await agent.invoke("x", {
    onApproval: ({ toolName }, { runId }) =>
      runId === "run_1" ? { decision: "denied", reason: toolName } : { decision: "approved" },
  });
  handled.output satisfies string;
  agent.stream("x", { onApproval: () => ({ decision: "approved" }) });
  const onApproval: "wait" | "return" = process.argv.length > 2 ? "wait" : "return";
  const either = await agent.invoke("x", { onApproval });
  if (either.status === "waiting") void either.pendingApprovals;
  else either.output satisfies string;
  // @ts-expect-error: onApproval is "wait", "return" or a function
  await agent.invoke("x", { onApproval: "ask" });
  // @ts-expect-error: a handler returns a decision
  await agent.invoke("x", { onApproval: () => true });
  // @ts-expect-error: onApproval "return" is an option of invoke() only
  agent.stream("x", { onApproval: "return" });
}

/** `timeoutWhileWaiting` is an option of `invoke`, `stream` and `submit`. */
export async function waiting(): Promise<void> {
  await agent.invoke("x", { timeoutMs: 1_000, timeoutWhileWaiting: true });
  await runtime.submit(agent, "x", { budget: { deadlineMs: 1_000 }, timeoutWhileWaiting: true });
  // @ts-expect-error: timeoutWhileWaiting is a boolean
  await agent.invoke("x", { timeoutMs: 1_000, timeoutWhileWaiting: 5 });
}

/** `await using` closes a runtime, and a result of a run that was submitted keeps its type there. */
export async function disposed(schema: typeof place): Promise<string> {
  await using opened = await openRuntime({ closeOn: ["SIGTERM"] });
  opened satisfies AsyncDisposable;
  const handle = await agent.submit("x", { runtime: opened, output: schema });
  const result = await handle.result();
  // @ts-expect-error: a runtime is closed asynchronously, with `await using`
  using closed = await openRuntime();
  closed satisfies unknown;
  // @ts-expect-error: closeOn lists signals
  await openRuntime({ closeOn: "SIGTERM" });
  return result.status === "completed" ? result.output.town : result.output;
}

/** The messages of a result contain those that were added in the name of the user, and start a new conversation. */
export async function continuedConversation(): Promise<void> {
  const { messages } = await agent.invoke("x");
  for (const { role } of messages) role satisfies "user" | "assistant" | "tool";
  await agent.invoke([...messages, { role: "user", content: "Go on." }]);
}

/** Settings of a model have the types of the settings of a call. */
export function modelSettings(model: Model): void {
  withSettings(model, { temperature: 0, toolChoice: "none", stopSequences: ["\n"] });
  // @ts-expect-error: `topP` is a number
  withSettings(model, { topP: "high" });
  // @ts-expect-error: the setting is `maxOutputTokens`
  withSettings(model, { maxTokens: 5 });
}

/** The option `onBudget` accepts one of two words. */
export function atBudget(options: AgentOptions): void {
  ({ ...options, onBudget: "ask" }) satisfies AgentOptions;
  // @ts-expect-error: the words are `ask` and `end`
  ({ ...options, onBudget: "wait" }) satisfies AgentOptions;
}
