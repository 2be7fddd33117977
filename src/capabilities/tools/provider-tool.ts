import {
  assertJson,
  describeValue,
  Fault,
  is,
  optionTable,
  readProperty,
  type JsonObject,
  type OptionKinds,
  type Tool,
} from "../../kernel/index.ts";
import { tool } from "./tool.ts";

/** A tool of a provider as the packages of the AI SDK create it, such as `anthropic.tools.webSearch_20250305()`. */
export interface AiSdkProviderTool {
  readonly type?: string;
  readonly id?: string;
  readonly args?: unknown;
  readonly isProviderExecuted?: boolean;
}

/** Options of `providerTool()`. */
export interface ProviderToolOptions {
  /** Price of one use in USD, besides the tokens, as the provider states it. 0 for a tool that costs only tokens. */
  readonly usdPerUse: number;
  /**
   * B1: how often one model call may use the tool. Default: the `maxUses` of the tool. A call with a tool without this number is
   * refused under a budget of tokens or dollars.
   */
  readonly maxUses?: number;
  /**
   * B1: highest number of input tokens that the result of one use adds. Default: the context window of the model. A lower number makes
   * reservations smaller; if a result is larger, the run stops with an overrun.
   */
  readonly maxTokensPerUse?: number;
  /** Name by which the model calls the tool. Default: the name in the id, such as `web_search`. */
  readonly name?: string;
}

const knownOptions = optionTable({
  usdPerUse: is.number({ from: 0, finite: true }),
  maxUses: is.number({ from: 1, whole: true }),
  maxTokensPerUse: is.number({ from: 1, whole: true }),
  name: is.text(),
} satisfies OptionKinds<ProviderToolOptions>);

/** The tools that a provider can limit: by their own argument, or together in the request. */
const limited: readonly RegExp[] = [
  /^anthropic\.(?:advisor|web_fetch|web_search)_\d+$/u,
  /^openai\.(?:code_interpreter|file_search|image_generation|mcp|web_search|web_search_preview)$/u,
];

/**
 * Gives an agent a tool that the provider of its model executes, such as web search or code execution. Its calls and results are part
 * of the model's message, and are recorded with it. B1: the reservation of a model call contains all uses and the input that their
 * results can add.
 *
 * No rule, approval, hook or guardrail sees a use before the provider executes it.
 *
 * @example
 * ```ts
 * import { anthropic } from "@ai-sdk/anthropic";
 * import { Agent } from "reeve";
 * import { providerTool } from "reeve/tools";
 *
 * const search = providerTool(anthropic.tools.webSearch_20250305({ maxUses: 3 }), {
 *   usdPerUse: 0.01,
 *   maxTokensPerUse: 20_000,
 * });
 * const scout = new Agent({ name: "scout", model: anthropic("claude-sonnet-5"), tools: [search] });
 * ```
 */
export function providerTool(source: AiSdkProviderTool, options: ProviderToolOptions): Tool {
  const {
    usdPerUse,
    maxUses: chosen,
    maxTokensPerUse = null,
    name: given,
  } = knownOptions.read("providerTool()", options);
  const { id, args } = checkedSource(source);
  if (usdPerUse === undefined)
    throw new Fault(
      "invalid_argument",
      `missing usdPerUse of providerTool() for ${id}: state the price of one use in USD, or 0 for a tool that costs only tokens`,
    );
  const canLimit = limited.some((pattern) => pattern.test(id));
  const own = args["maxUses"];
  if (chosen !== undefined && !canLimit)
    throw new Fault(
      "invalid_argument",
      `invalid maxUses of providerTool() for ${id}: the provider cannot limit the uses of this tool; remove maxUses, and use the tool in runs without a budget of tokens and dollars`,
    );
  const maxUses = chosen ?? (canLimit && typeof own === "number" ? own : null);
  const isOwnLimit = id.startsWith("anthropic.") && maxUses !== null;
  const name = given ?? nameOf(id);
  const made = tool({
    name,
    description: `Executed by the provider of the model (${id})`,
    inputSchema: { type: "object" },
    execute: () => {
      throw new Fault("tool_failed", `${name} is executed by the provider; it cannot be called here`);
    },
  });
  const provider = Object.freeze({
    id,
    args: Object.freeze(isOwnLimit ? { ...args, maxUses } : args),
    maxUses,
    usdPerUse,
    maxTokensPerUse,
  });
  return Object.freeze({ ...made, provider });
}

/** Refuses what is no tool of a provider, and a tool that the program must execute itself. */
function checkedSource(source: unknown): { readonly id: string; readonly args: JsonObject } {
  const [type, id, args = {}] = ["type", "id", "args"].map((name) => readProperty(source, name));
  if ((type !== "provider" && type !== "provider-defined") || typeof id !== "string" || !id.includes("."))
    throw new Fault(
      "invalid_argument",
      `invalid tool ${describeValue(source)} of providerTool(): expected a tool of a provider of the AI SDK, such as anthropic.tools.webSearch_20250305({ maxUses: 3 })`,
    );
  if (readProperty(source, "isProviderExecuted") === false)
    throw new Fault(
      "unsupported",
      `${id} of providerTool() is executed by your program and not by the provider; write a tool with tool({ name, description, inputSchema, execute })`,
    );
  assertJson(args, `the arguments of ${id}`);
  return { id, args: args as JsonObject };
}

/** `web_search` for `anthropic.web_search_20250305`. */
function nameOf(id: string): string {
  return id.slice(id.indexOf(".") + 1).replace(/_\d{8}$/u, "");
}
