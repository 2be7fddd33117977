import {
  addUsage,
  assistantMessage,
  eventDraft,
  Fault,
  messageText,
  modelFor,
  toolCallsOf,
  userMessage,
  type HostedAgent,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type JsonSchema,
  type JsonValue,
  type ResponseFormat,
} from "../kernel/index.ts";
import { unanswered } from "./said-entries.ts";

/** What is wrong with a value by a schema; nothing when it fits. */
export type SchemaCheck = (
  schema: JsonSchema,
  value: JsonValue,
) => readonly string[] | Promise<readonly string[]>;

/** Throws if a schema is none, before anything is paid for it. */
export function acceptSchema(check: SchemaCheck, schema: JsonSchema): void | Promise<void> {
  const problems = check(schema, null);
  if (problems instanceof Promise) return problems.then(() => undefined);
}

/** Throws if nobody could give an answer in a form, before anything is paid for it. */
export function acceptForm(
  agent: HostedAgent,
  { name, supportsStructuredOutput = true }: Architecture,
): void {
  if (!supportsStructuredOutput && modelFor(agent, "main") === undefined)
    throw new Fault(
      "invalid_argument",
      `the answer of ${agent.id}, by ${name}, is all that was said, which fits no schema: give it a model to put that into the form, or ask the agent that gives the last answer for it`,
    );
}

/** How often the model is asked again when its answer does not fit; each is a call that is paid. */
const maxRepairs = 2;

export function formatOf(schema: JsonSchema): ResponseFormat {
  return { type: "json", schema, name: "answer" };
}

/** For models whose providers cannot hold them to a format, and for architectures that ask several times. */
export function withFormat(instructions: string, schema: JsonSchema): string {
  const asked = `Your final answer must be JSON that fits this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
  return instructions === "" ? asked : `${instructions}\n\n${asked}`;
}

/** The same for work on the way to the answer. */
export function withoutFormat(instructions: string, format: ResponseFormat | null): string {
  if (format?.type !== "json" || format.schema === undefined) return instructions;
  return instructions.replace(withFormat("", format.schema), "").trimEnd();
}

/** How an answer is made to fit. */
interface Fitting {
  readonly check: SchemaCheck;
  /** A team that has no model of its own can ask nobody again. */
  readonly canAsk: boolean;
}

/** Makes an answer fit whatever architecture came to it: as it is, or by asking again with what was wrong. */
export async function fitAnswer(
  session: AgentSession,
  deps: Dependencies,
  schema: JsonSchema,
  { check, canAsk }: Fitting,
): Promise<JsonValue> {
  for (let repairs = 0; ; repairs++) {
    const read = await readAnswer(session.output, schema, check);
    if ("value" in read) return read.value;
    if (repairs === maxRepairs || !canAsk) {
      const { problems } = read;
      throw new Fault("model_format_error", `the answer does not fit its schema: ${problems.join("; ")}`, {
        details: { problems },
      });
    }
    await repair(session, deps, schema, read.problems);
  }
}

async function repair(
  session: AgentSession,
  { ctx, role, history, tools }: Dependencies,
  schema: JsonSchema,
  problems: readonly string[],
): Promise<void> {
  ctx.check();
  const turn = ++session.turns;
  ctx.emitEvent(eventDraft("turn_start", { turn }));
  if (session.messages.at(-1)?.role !== "assistant" && session.output !== "")
    session.messages = session.messages.append(assistantMessage(session.output));
  session.messages = session.messages.append(
    userMessage(
      `That does not fit the JSON Schema ${JSON.stringify(schema)}: ${problems.join("; ")}. Answer again, with the whole JSON and nothing else.`,
    ),
  );
  const { message, usage, stopReason } = await ctx.llm({
    transcript: await history.getPromptWindow(session.id),
    instructions: session.instructions,
    // Providers refuse a conversation with calls in it that knows of no tools.
    tools: tools.list(),
    toolChoice: "none",
    responseFormat: formatOf(schema),
    role,
  });
  // S1: a model may call all the same.
  const open = unanswered(message, { reason: "an answer was asked for, and nothing else", settled: [] });
  session.messages = session.messages.append(message, ...(open === undefined ? [] : [open]));
  session.cumulativeUsage = addUsage(session.cumulativeUsage, usage);
  session.output = messageText(message);
  ctx.emitEvent(eventDraft("turn_end", { turn, stopReason, toolCalls: toolCallsOf(message).length }));
}

async function readAnswer(
  text: string,
  schema: JsonSchema,
  check: SchemaCheck,
): Promise<{ readonly value: JsonValue } | { readonly problems: readonly string[] }> {
  let value: JsonValue;
  try {
    value = JSON.parse(unfenced(text)) as JsonValue;
  } catch (error) {
    return { problems: [`it is not JSON: ${Fault.from(error).message}`] };
  }
  const problems = await check(schema, value);
  return problems.length === 0 ? { value } : { problems };
}

const fence = "```";

/**
 * Models like to put JSON into a code block: what is in it, if the text is one. Looked for in one pass, however many blanks are in it: an
 * expression that goes back over them stops the whole process for minutes.
 */
export function unfenced(text: string): string {
  const whole = text.trim();
  const [opened = ""] = /^```(?:json)?[^\S\n]*\n/u.exec(whole) ?? [];
  const isBlock = opened !== "" && whole.endsWith(fence) && whole.length >= opened.length + fence.length;
  return isBlock ? whole.slice(opened.length, -fence.length).trim() : text;
}

/** The first code block among other words. */
export function fencedIn(text: string): string | undefined {
  const opened = /```(?:json)?[^\S\n]*\n/u.exec(text);
  if (opened === null) return undefined;
  const from = opened.index + opened[0].length;
  const to = text.indexOf(fence, from);
  return to < 0 ? undefined : text.slice(from, to);
}
