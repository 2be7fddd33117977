import {
  addUsage,
  assistantMessage,
  eventDraft,
  describeKind,
  describeValue,
  Fault,
  isPromise,
  messageText,
  modelFor,
  toolCallsOf,
  userMessage,
  type HostedAgent,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonSchema,
  type SchemaCheck,
  type JsonValue,
  type LlmRequest,
  type Model,
  type ResponseFormat,
} from "../../kernel/index.ts";
import { samplingOf } from "./call-settings.ts";
import { addUserMessages } from "./user-messages.ts";
import { answersIn, plainAnswersIn } from "./json-in-text.ts";
import { unanswered } from "./interrupted-end.ts";

/** Throws if a schema is invalid, before any call is paid. */
export function acceptSchema(check: SchemaCheck, schema: JsonSchema): void | Promise<void> {
  const problems = check(schema, null);
  if (problems instanceof Promise) return problems.then(() => undefined);
}

/**
 * Throws if neither the architecture nor a model of the agent can give a structured answer, before any call is paid.
 */
export function acceptForm(
  agent: HostedAgent,
  { name, supportsStructuredOutput = true }: Architecture,
): void {
  if (!supportsStructuredOutput && modelFor(agent, "main") === undefined)
    throw new Fault(
      "invalid_argument",
      `agent ${agent.id} cannot give structured output: its architecture ${name} returns free text; set the option \`model\`, or request the output from the agent that gives the last answer`,
    );
}

/**
 * Maximum number of times that the model is asked again if its answer does not match the schema. Each attempt is a
 * paid call.
 */
const maxRepairs = 2;

export function formatOf(schema: JsonSchema): ResponseFormat {
  return { type: "json", schema, name: "answer" };
}

/**
 * Adds the schema to the instructions, for models without structured output and for architectures with several model
 * calls.
 */
export function withFormat(instructions: string, schema: JsonSchema): string {
  const asked = `Your final answer must be JSON that matches this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
  return instructions === "" ? asked : `${instructions}\n\n${asked}`;
}

/** Removes the schema from the instructions, for intermediate work of an architecture. */
export function withoutFormat(instructions: string, format: ResponseFormat | null): string {
  if (format?.type !== "json" || format.schema === undefined) return instructions;
  return instructions.replace(withFormat("", format.schema), "").trimEnd();
}

/**
 * Returns the instructions for a call that sends this format. A model that is known to enforce the schema receives it
 * once, as the format; any other model receives it in the instructions too.
 */
export function instructionsFor(
  model: Pick<Model, "supportsStructuredOutput">,
  instructions: string,
  format: ResponseFormat | null,
): string {
  return model.supportsStructuredOutput === true ? withoutFormat(instructions, format) : instructions;
}

/** The tools with which an answer is made to match its schema. */
interface Fitting {
  readonly check: SchemaCheck;
  /** Whether a model can be asked again. This is not possible for a team without its own model. */
  readonly canAsk: boolean;
}

/**
 * Makes the answer of any architecture match the schema. An answer that matches is unchanged; otherwise the model
 * is asked again with the list of problems. Returns `undefined` if the last answer was cut at the output limit,
 * because the next one would be cut as well.
 */
export async function fitAnswer(
  session: AgentSession,
  deps: Dependencies,
  schema: JsonSchema,
  { check, canAsk }: Fitting,
): Promise<{ readonly value: JsonValue } | undefined> {
  for (let repairs = 0; ; repairs++) {
    const read = await readAnswer(session.output, schema, check);
    if ("value" in read) return read;
    if (session.replies.reasonOf(session.output) === "length") return undefined;
    if (repairs === maxRepairs || !canAsk) {
      const { problems } = read;
      throw new Fault("model_format_error", `the answer does not match its schema: ${problems.join("; ")}`, {
        details: { problems },
      });
    }
    await repair(session, deps, schema, read.problems);
  }
}

async function repair(
  session: AgentSession,
  deps: Dependencies,
  schema: JsonSchema,
  problems: readonly string[],
): Promise<void> {
  const { ctx, role, history, tools, model, settings } = deps;
  const format = formatOf(schema);
  const schemaText = model.supportsStructuredOutput === true ? "" : ` ${JSON.stringify(schema)}`;
  ctx.check();
  const turn = ++session.turns;
  ctx.emitEvent(eventDraft("turn_start", { turn }));
  if (session.messages.at(-1)?.role !== "assistant" && session.output !== "")
    session.messages = session.messages.append(assistantMessage(session.output));
  const request = userMessage(
    `That does not match the JSON Schema${schemaText}: ${problems.join("; ")}. Answer again with the complete JSON and nothing else.`,
  );
  addUserMessages(session, ctx, [request], "repair");
  const call: LlmRequest = {
    ...samplingOf(settings),
    transcript: await history.getPromptWindow(session.id),
    instructions: instructionsFor(model, session.instructions, format),
    // Providers refuse a conversation that contains tool calls but lists no tools.
    tools: tools.list(session.messages),
    toolChoice: "none",
    responseFormat: format,
    role,
  };
  const reply = await ctx.llm(call).catch((error: unknown) => deps.callShorter(error, call, session.id));
  const { message, usage, stopReason } = reply;
  // S1: the model may call a tool nevertheless; such calls get a result that says that they were not executed.
  const open = unanswered(message, { reason: "an answer was asked for, and nothing else", settled: [] });
  session.messages = session.messages.append(message, ...(open === undefined ? [] : [open]));
  session.cumulativeUsage = addUsage(session.cumulativeUsage, usage);
  session.output = messageText(message);
  session.replies.add(session.output, stopReason);
  ctx.emitEvent(eventDraft("turn_end", { turn, stopReason, toolCalls: toolCallsOf(message).length }));
}

/** Returns the first value in the answer that fits the schema, or what is wrong with the most likely one. */
async function readAnswer(
  text: string,
  schema: JsonSchema,
  check: SchemaCheck,
): Promise<{ readonly value: JsonValue } | { readonly problems: readonly string[] }> {
  let first: readonly string[] | undefined;
  for (const { value } of answersIn(text)) {
    const problems = await check(schema, value);
    if (problems.length === 0) return { value };
    first ??= problems;
  }
  for (const value of plainAnswersIn(text))
    if (value !== "" && (await check(schema, value)).length === 0) return { value };
  return { problems: first ?? ["it is not JSON and contains no JSON list or object"] };
}

/**
 * Rejects with a fault for an architecture whose `run` returns no events. For example, an async function returns a
 * promise, and its code would run at the same time as the invocation.
 */
export async function refuseEvents(events: unknown, { name }: Architecture): Promise<never> {
  // The code has started. It ends before the invocation does.
  if (isPromise(events)) await events;
  throw new Fault(
    "invalid_argument",
    `run() of architecture ${name} returned ${describeKind(events)} and no events; declare it as async *run(session, deps, prompt)`,
  );
}

/** Whether a value is a list or a generator of events, asynchronous or not. */
export function hasEvents(events: unknown): events is AsyncIterable<EmittableEvent> {
  if (typeof events !== "object" || events === null) return false;
  return Symbol.asyncIterator in events || Symbol.iterator in events;
}

/** Throws if the output of a session is not a text. An architecture in JavaScript may set any value. */
export function requireTextOutput(session: AgentSession, { name }: Architecture): void {
  const output: unknown = session.output;
  if (typeof output === "string") return;
  session.output = "";
  throw new Fault(
    "invalid_argument",
    `invalid session.output ${describeValue(output)} of architecture ${name}: expected a string; use JSON.stringify for other values`,
  );
}
