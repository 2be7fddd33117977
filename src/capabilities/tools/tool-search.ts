import { Fault, type JsonValue, type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { rankTools } from "./tool-rank.ts";
import { errorResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `toolSearch()`. */
export interface ToolSearchOptions {
  /** All tools. */
  readonly tools: readonly Tool[];
  /** Names of the tools that every request contains, for example those that are used often. Default: none. */
  readonly keep?: readonly string[];
  /**
   * Minimum number of tools from which tools have to be found. With fewer tools, `toolSearch` returns the tools
   * unchanged. Default: 20.
   */
  readonly from?: number;
  /** Maximum number of tools that a search by query finds. Default: 5. */
  readonly maxResults?: number;
  /** Name of the search tool. Default: `search_tools`. */
  readonly name?: string;
}

const input = {
  type: "object",
  properties: {
    names: { type: "array", items: { type: "string" }, description: "Names of tools" },
    query: { type: "string", description: "A short description of what you want to do" },
  },
  additionalProperties: false,
} as const;

const knownOptions = optionTable({
  tools: is.list(),
  keep: is.list({ of: is.text() }),
  from: is.number({ default: 20 }),
  maxResults: is.number({ from: 0, default: 5 }),
  name: is.text({ default: "search_tools" }),
} satisfies OptionKinds<ToolSearchOptions>);

/**
 * Makes a long list of tools cheap to send. A request to the model contains the tools of `keep`, the search tool
 * and the tools that were found so far. The search tool finds tools by their names or by words.
 *
 * - X2: a tool is called by its own name, so guardrails, permissions and the journal see that name.
 * - X3: the result of a call with invalid arguments contains the schema, so that a model that guessed the arguments
 *   needs no search. A tool counts as found when it is called.
 * - X4: which tools are sent depends only on the journaled conversation, so that a replay, another process and the
 *   next invocation of a session send the same tools. Found tools are added at the end of the list, so that the
 *   tools before them stay in the provider's prompt cache; the conversation after them is cached again.
 *
 * A found tool that the agent no longer has is not sent. At most 64 found tools are sent; if more are found, those
 * found first have to be found again.
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
  const { tools, keep = [], from, maxResults, name } = knownOptions.read("toolSearch()", options);
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
    description: `Find tools among ${hidden.length} that you do not see: by their names, or at most ${maxResults} by a description of what you want to do. After that you can call the found tools.`,
    inputSchema: input,
    execute: ({ names = [], query = "" }) => {
      const isQuery = query.trim() !== "";
      if (names.length === 0 && !isQuery)
        return errorResult("both names and query are missing: send one of them");
      const named = names.filter((each) => known.has(each));
      const ranked = isQuery ? rankTools(hidden, query, maxResults) : [];
      const found = [...new Set([...named, ...ranked.map((each) => each.name)])];
      const unknown = names.filter((each) => !known.has(each));
      const problem = [
        ...(unknown.length > 0 ? [`there is no tool named ${unknown.join(", ")}`] : []),
        ...(isQuery && ranked.length === 0
          ? [`no tool matches ${JSON.stringify(query)}: try other words`]
          : []),
      ].join("; ");
      if (found.length === 0) return errorResult(problem);
      const value = problem === "" ? { found } : { found, problem };
      return { output: { type: "json", value }, isError: false };
    },
  });
  return [...tools.map((each) => (keep.includes(each.name) ? each : hide(each, name))), search];
}

/** Returns the same tool with a mark that the search tool must find it. */
function hide(whole: Tool, foundBy: string): Tool {
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
  const {
    name,
    description,
    inputSchema,
    origin,
    risk,
    destructive,
    edits,
    concurrency,
    timeoutMs,
    suspends,
  } = whole;
  return Object.freeze({
    name,
    description,
    inputSchema,
    foundBy,
    represents: whole,
    ...(origin && { origin }),
    risk,
    destructive,
    edits,
    concurrency,
    timeoutMs,
    suspends,
    parse,
    needsApproval: (given: unknown) => whole.needsApproval(given),
    ...(whole.approvalScope && { approvalScope: (given: unknown) => whole.approvalScope?.(given) ?? null }),
    execute: (given: unknown, context: Parameters<Tool["execute"]>[1]) => whole.execute(given, context),
    ...(whole.coerce && { coerce: (given: JsonValue) => whole.coerce?.(given) ?? given }),
  });
}
