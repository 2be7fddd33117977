import {
  checkOptions,
  Fault,
  optionNames,
  type JsonObject,
  type JsonValue,
  type Tool,
} from "../../kernel/index.ts";
import { rankTools } from "./tool-rank.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `toolSearch()`. */
export interface ToolSearchOptions {
  /** All tools, in the order in which the model sees them. */
  readonly tools: readonly Tool[];
  /**
   * Names of the tools that keep their whole description and schema, for example those that are used often. Default:
   * none.
   */
  readonly keep?: readonly string[];
  /**
   * Minimum number of tools from which the list is shortened. With fewer tools, `toolSearch` returns the tools
   * unchanged. Default: 20.
   */
  readonly from?: number;
  /** Maximum number of tools that a search by query returns. Default: 5. */
  readonly maxResults?: number;
  /** Name of the search tool. Default: `search_tools`. */
  readonly name?: string;
}

/** Schema that accepts any arguments. The tool's own schema validates them. */
const anyInput: JsonObject = Object.freeze({ type: "object", additionalProperties: true });

const input = {
  type: "object",
  properties: {
    names: { type: "array", items: { type: "string" }, description: "Names of tools" },
    query: { type: "string", description: "A short description of what you want to do" },
  },
  additionalProperties: false,
} as const;

/** Maximum length of a description in the shortened list, in characters. */
const stubLength = 120;

const knownOptions = optionNames<ToolSearchOptions>({
  tools: true,
  keep: true,
  from: true,
  maxResults: true,
  name: true,
});

/**
 * Shortens a long list of tools so that it is cheap to send: each tool keeps its name and one sentence of its description. The last tool of
 * the list, the search tool, returns descriptions and schemas on demand.
 *
 * - X1: the list never changes during a run, so the provider's prompt cache stays valid. Schemas are appended to the conversation.
 * - X2: a tool is called by its own name, so the gate, the journal and permissions see that name.
 * - X3: a call with invalid arguments is answered with the schema, so a model that guessed the arguments needs no search.
 *
 * @example
 * ```ts
 * import { fetchTool, fileTools, toolSearch } from "reeve/tools";
 *
 * const all = [...fileTools({ root: "./workspace" }), fetchTool()];
 * const tools = toolSearch({ tools: all, keep: ["read"], from: 5 });
 * ```
 */
export function toolSearch(options: ToolSearchOptions): readonly Tool[] {
  checkOptions("toolSearch()", options, knownOptions);
  const { tools, keep = [], from = 20, maxResults = 5, name = "search_tools" } = options;
  const known = new Map(tools.map((each) => [each.name, each]));
  for (const kept of keep)
    if (!known.has(kept))
      throw new Fault("invalid_argument", `invalid keep of toolSearch: ${kept} is not one of the tools`);
  if (known.has(name))
    throw new Fault("already_exists", `a tool is already named ${name}: choose another name for toolSearch`);
  if (tools.length < from) return tools;
  const hidden = tools.filter((each) => !keep.includes(each.name));
  const search = tool({
    name,
    description: `Return the arguments of tools that are listed without them: by their names, or at most ${maxResults} by a description of what you want to do. Then call the tool by its name.`,
    inputSchema: input,
    execute: ({ names = [], query = "" }) => {
      const unknown = names.filter((each) => !known.has(each));
      const named = names.flatMap((each) => known.get(each) ?? []);
      const found = query.trim() === "" ? [] : rankTools(hidden, query, maxResults);
      const given = [...new Set([...named, ...found])].slice(0, Math.max(maxResults, names.length));
      const facts = { query, names, given: given.map((each) => each.name) };
      if (names.length === 0 && query.trim() === "")
        return errorResult("both names and query are missing: send one of them", facts);
      const lines = given.map(described);
      if (unknown.length > 0) lines.push(`[there is no tool named ${unknown.join(", ")}]`);
      if (given.length > 0) return textResult(lines.join("\n\n"), facts);
      return errorResult(
        [...lines, `no tool matches ${JSON.stringify(query)}: try other words`].join("\n"),
        facts,
      );
    },
  });
  return [...tools.map((each) => (keep.includes(each.name) ? each : stubOf(each, name))), search];
}

function stubOf(whole: Tool, search: string): Tool {
  const line = firstLine(whole.description);
  const parse = async (given: JsonValue): Promise<unknown> => {
    try {
      return await whole.parse(given);
    } catch (error) {
      const fault = Fault.from(error);
      if (fault.code !== "invalid_argument") throw error;
      throw new Fault(
        "invalid_argument",
        `${fault.message}. Its arguments are:\n${JSON.stringify(whole.inputSchema)}`,
        {
          cause: error,
        },
      );
    }
  };
  const { name, origin, risk, destructive, edits, concurrency, timeoutMs, suspends } = whole;
  return Object.freeze({
    name,
    ...(origin && { origin }),
    risk,
    destructive,
    edits,
    concurrency,
    timeoutMs,
    suspends,
    description: `${line} [arguments: ask ${search}]`,
    inputSchema: anyInput,
    parse,
    represents: whole,
    needsApproval: (given: unknown) => whole.needsApproval(given),
    ...(whole.approvalScope && { approvalScope: (given: unknown) => whole.approvalScope?.(given) ?? null }),
    execute: (given: unknown, context: Parameters<Tool["execute"]>[1]) => whole.execute(given, context),
    ...(whole.coerce && { coerce: (given: JsonValue) => whole.coerce?.(given) ?? given }),
  });
}

function firstLine(description: string): string {
  const [line = ""] = description.split("\n", 1);
  const sentence = /^.*?[.!?](?=\s|$)/.exec(line)?.[0] ?? line;
  return sentence.length > stubLength ? `${sentence.slice(0, stubLength - 1).toWellFormed()}…` : sentence;
}

function described({ name, description, inputSchema }: Tool): string {
  return `${name}: ${description}\narguments: ${JSON.stringify(inputSchema)}`;
}
