import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";
import { invalidOption, is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { ToolResult } from "../messages/tool-call.ts";

/** A tool that the caller of a run brings along and executes itself. */
export type ClientTool = Pick<ToolSpec, "name" | "description" | "inputSchema">;

/**
 * The changes that a caller makes to an agent for one run. They are stored, so that another worker that resumes the
 * run uses them too.
 */
export interface RunChanges {
  /**
   * Text that replaces the agent's instructions. Texts that a submission, the memory or the answer format add to
   * the instructions still follow it. If absent, the run has the instructions of its agent.
   */
  readonly instructions?: string;
  /** Name of the main model of the root, `provider/id`. If absent, the run has the model of its agent or session. */
  readonly model?: string;
  /**
   * Names of the tools of the agent that the model sees and may call. Tools of the architecture always stay. If
   * absent, all tools of the agent stay.
   */
  readonly tools?: readonly string[];
  /**
   * Tools that the root has in addition and that the caller executes: a call waits durably until `RunHandle.toolResult` sends
   * the result, as for `tool({ clientSide: true })`. A tool of the agent with the same name is hidden. If absent, none.
   */
  readonly clientTools?: readonly ClientTool[];
}

/** The changes as a task stores them. */
export interface StoredChanges {
  /** See `RunChanges.instructions`. */
  readonly instructions?: string;
  /** The main model of the task. */
  readonly model?: { readonly provider: string; readonly modelId: string };
  /** See `RunChanges.tools`. */
  readonly tools?: readonly string[];
  /** See `RunChanges.clientTools`. */
  readonly clientTools?: readonly ClientTool[];
}

/** A result of a tool call that replaces the recorded one in a fork. */
export interface EditedResult {
  /** Id of the call, as in the event `tool_execution_end`. */
  readonly callId: string;
  /** What the model sees: a text, or another JSON value. */
  readonly output: JsonValue;
  /** Whether the call failed. Default: `false`. */
  readonly isError?: boolean;
}

/** An edited tool result, as in the event `run_fork`. */
export interface EditedToolResult extends Pick<ToolResult, "output" | "isError"> {
  readonly callId: string;
  readonly toolName: string;
}

/** What callers of a server with the scope `run` may change in a run of an agent. */
export interface AllowedChanges {
  /**
   * Names of the models, `provider/id`, that such callers may choose in addition to those of the agent. Default:
   * none.
   */
  readonly models?: readonly string[];
  /** Whether such callers may replace the instructions. Default: `false`. */
  readonly instructions?: boolean;
  /** Whether such callers may remove tools. Default: `false`. */
  readonly tools?: boolean;
  /** Whether such callers may replace results of tool calls in a fork. Default: `false`. */
  readonly toolResults?: boolean;
}

/** A list of names, none of them twice. */
export const nameListKind = is.list({
  of: is.checkedBy((name: unknown, option, owner) => {
    if (typeof name !== "string" || name === "") throw invalidOption(owner, option, name, "a name");
  }),
});

/** A text that is not empty. */
export const changedTextKind = is.text({ empty: false, hint: "omit the option" });

/** The tools of a caller: their names differ, and each has all members. The agent checks names and schemas. */
const clientToolsKind = is.list({
  of: is.checkedBy((tool: unknown, option, owner) => {
    const { name, description, inputSchema } = Object(tool) as Partial<ClientTool>;
    const isSchema = typeof inputSchema === "object" && inputSchema !== null && !Array.isArray(inputSchema);
    if (typeof name !== "string" || typeof description !== "string" || !isSchema)
      throw invalidOption(owner, option, tool, "{ name, description, inputSchema }");
  }),
});

const changeTable = optionTable({
  instructions: changedTextKind,
  model: is.text(),
  tools: nameListKind,
  clientTools: clientToolsKind,
} satisfies OptionKinds<RunChanges>);

const allowedTable = optionTable({
  models: nameListKind,
  instructions: is.boolean(),
  tools: is.boolean(),
  toolResults: is.boolean(),
} satisfies OptionKinds<AllowedChanges>);

/** Checks the changes of a caller and returns them. Throws `invalid_argument` for an unknown or invalid change. */
export function readChanges(changes: RunChanges, owner: string): RunChanges {
  const { clientTools = [] } = changeTable.read(owner, changes);
  const names = clientTools.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return changes;
  throw new Fault(
    "invalid_argument",
    `invalid clientTools of ${owner}: two tools have the name ${describeValue(twice)}; rename one of them`,
  );
}

/**
 * Checks the option `allowedChanges` of an agent and returns it. Throws `invalid_argument` for an unknown or
 * invalid member.
 */
export function readAllowedChanges(allowed: AllowedChanges, owner: string): AllowedChanges {
  return allowedTable.read(owner, allowed);
}

/** The facts about an agent that the check of a caller's changes uses. */
export interface ChangedAgent {
  readonly name: string;
  readonly allowed: AllowedChanges;
  /** Names of the models that the agent has itself. */
  readonly models: readonly string[];
}

/** The changes that a caller wants. `toolResults` says whether results of tool calls are replaced. */
export interface WantedChanges extends RunChanges {
  readonly toolResults?: boolean;
}

/** Throws `permission_denied` if a caller with the scope `run` may not make these changes in a run of the agent. */
export function assertAllowed(
  { name, allowed, models }: ChangedAgent,
  { model, ...wanted }: WantedChanges,
): void {
  for (const part of ["instructions", "tools", "toolResults"] as const) {
    if (wanted[part] === undefined || wanted[part] === false || allowed[part] === true) continue;
    throw new Fault(
      "permission_denied",
      `the token may not change ${part} in a run of agent ${name}; use a token with the scope admin, or set allowedChanges: { ${part}: true } of the agent`,
      { details: { agent: name, change: part } },
    );
  }
  const choices = [...new Set([...models, ...(allowed.models ?? [])])];
  if (model === undefined || choices.includes(model)) return;
  throw new Fault(
    "permission_denied",
    `the token may not choose the model ${describeValue(model)} for a run of agent ${name}; choose one of ${choices.join(", ") || "none"}, use a token with the scope admin, or add the model to allowedChanges.models of the agent`,
    { details: { agent: name, change: "model", model } },
  );
}

/**
 * Throws `invalid_argument` if one of the names is not the name of a tool of the run. `owner` names the option in
 * the error.
 */
export function assertToolNames(
  names: readonly string[] | undefined,
  known: readonly string[],
  owner: string,
): void {
  const unknown = names?.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new Fault(
    "invalid_argument",
    `invalid tools of ${owner}: there is no tool ${describeValue(unknown)}; use some of ${known.join(", ") || "none"}`,
  );
}
