import {
  describeValue,
  Fault,
  readToolChoice,
  toolCallsOf,
  userMessage,
  type AgentSession,
  type Architecture,
  type AssistantMessage,
  type Dependencies,
  type JsonObject,
  type PrepareStep,
  type StopCondition,
  type ToolResult,
  type TurnChanges,
  type TurnStart,
  type UserMessage,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { readUserMessage } from "../../base/input-messages.ts";

/** The changes of one turn in the form in which they are journaled. */
export interface PreparedTurn extends Omit<TurnChanges, "messages"> {
  readonly messages?: readonly UserMessage[];
}

const changeTable = optionTable({
  role: is.text(),
  tools: is.any,
  toolChoice: is.any,
  messages: is.any,
} satisfies OptionKinds<TurnChanges>);

/** Calls `prepareStep` for the turn that is about to start, as a step. J1: it is called once per turn. */
export function prepareTurn(
  prepareStep: PrepareStep,
  { ctx, tools }: Dependencies,
  { messages, cumulativeUsage: usage, turns: turn }: AgentSession,
): Promise<PreparedTurn> {
  return ctx.step("prepare_step", async () => {
    const toolNames = tools.list(messages).map(({ name }) => name);
    const start: TurnStart = { turn, messages, usage, toolNames, facts: ctx.facts };
    return readChanges((await prepareStep(start)) ?? {}, toolNames) as unknown as JsonObject;
  });
}

/** Calls `stopWhen` for a turn that ended with tool results, as a step. */
export function stopsAfter(
  stopWhen: StopCondition,
  { ctx }: Dependencies,
  { messages, cumulativeUsage: usage, turns: turn }: AgentSession,
  message: AssistantMessage,
  results: readonly ToolResult[],
): Promise<boolean> {
  const toolCalls = toolCallsOf(message);
  return ctx.step("stop_when", async () => {
    const stops: unknown = await stopWhen({
      turn,
      message,
      toolCalls,
      results,
      messages,
      usage,
      facts: ctx.facts,
    });
    if (typeof stops === "boolean") return stops;
    throw new Fault(
      "invalid_argument",
      `invalid result ${describeValue(stops)} of stopWhen: expected true or false`,
    );
  });
}

/** Returns a `prepareStep` that also throws for a role without a model. */
export function checkRoles(agent: string, prepareStep: PrepareStep, roles: readonly string[]): PrepareStep {
  return async (turn) => {
    const changes = await prepareStep(turn);
    const role = changes?.role;
    if (role === undefined || roles.includes(role)) return changes;
    throw new Fault(
      "invalid_argument",
      `invalid role ${JSON.stringify(role)} of prepareStep of agent ${agent}: expected one of ${roles.join(", ")}; add the model to the option \`models\``,
    );
  };
}

/** Throws for `prepareStep` and `stopWhen` if the architecture would ignore them. */
export function requireTurnControl(
  architecture: Architecture,
  {
    name,
    prepareStep,
    stopWhen,
  }: { readonly name: string; readonly prepareStep?: unknown; readonly stopWhen?: unknown },
): Architecture {
  const option = prepareStep ? "prepareStep" : stopWhen ? "stopWhen" : undefined;
  if (option === undefined || architecture.supportsTurnControl === true) return architecture;
  throw new Fault(
    "unsupported",
    `invalid option ${option} of agent ${name}: its architecture ${architecture.name} does not support it; use react or deep-agent`,
  );
}

/** Combines stop conditions: the loop ends if one of them returns `true`. */
export function anyOf(conditions: StopCondition | readonly StopCondition[]): StopCondition {
  if (typeof conditions === "function") return conditions;
  return async (turn) => {
    for (const condition of conditions) if (await condition(turn)) return true;
    return false;
  };
}

/**
 * Checks the changes of a turn and returns them. Throws for changes that the turn could not apply, before the model
 * is called.
 */
function readChanges(changes: TurnChanges, toolNames: readonly string[]): PreparedTurn {
  const { role, tools, toolChoice, messages } = changeTable.read("the result of prepareStep", changes);
  for (const name of tools === undefined ? [] : listOf("tools", tools)) requireTool("tool", name, toolNames);
  const choice =
    toolChoice === undefined ? undefined : readToolChoice(toolChoice, "toolChoice", "prepareStep");
  if (typeof choice === "object") requireTool("toolChoice", choice.toolName, tools ?? toolNames);
  return {
    ...(role !== undefined && { role }),
    ...(tools !== undefined && { tools }),
    ...(choice !== undefined && { toolChoice: choice }),
    ...(messages !== undefined && { messages: listOf("messages", messages).map(readMessage) }),
  };
}

function listOf<Item>(name: string, value: readonly Item[]): readonly Item[] {
  if (Array.isArray(value)) return value;
  throw new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of prepareStep: expected a list`,
  );
}

function requireTool(field: string, name: string, toolNames: readonly string[]): void {
  if (toolNames.includes(name)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${field} ${JSON.stringify(name)} of prepareStep: expected names of this turn's tools: ${toolNames.join(", ") || "none"}`,
  );
}

function readMessage(message: string | UserMessage): UserMessage {
  const read = typeof message === "string" ? userMessage(message) : readUserMessage(message);
  if (
    typeof read === "object" &&
    read.content.some((part) => part.type !== "text" || part.text.trim() !== "")
  )
    return read;
  throw new Fault(
    "invalid_argument",
    `invalid message of prepareStep: expected a text or a message with the role user, but it ${typeof read === "string" ? read : "is empty"}`,
  );
}

/**
 * Returns a stop condition that ends the loop after a turn in which the model called one of these tools.
 *
 * @example
 * ```ts
 * import { Agent, hasToolCall } from "reeve";
 *
 * const agent = new Agent({ name: "clerk", model: "anthropic/claude-sonnet-5", stopWhen: hasToolCall("file_report") });
 * ```
 */
export function hasToolCall(...names: readonly string[]): StopCondition {
  return ({ toolCalls }) => toolCalls.some(({ toolName }) => names.includes(toolName));
}
