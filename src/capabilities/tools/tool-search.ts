import { Fault, type JsonObject, type JsonValue, type Tool } from "../../kernel/index.ts";
import { rankTools } from "./tool-rank.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface ToolSearchOptions {
  /** All of them, in the order the model is to see. */
  readonly tools: readonly Tool[];
  /** Shown whole: those that are used all the time. */
  readonly keep?: readonly string[];
  /** Up to so many tools all are shown whole, and there is nothing to search. */
  readonly from?: number;
  /** Schemas given in one answer. */
  readonly maxResults?: number;
  readonly name?: string;
}

/** Takes anything: what is meant is checked by the tool's own schema. */
const anyInput: JsonObject = Object.freeze({ type: "object", additionalProperties: true });

const input = {
  type: "object",
  properties: {
    names: { type: "array", items: { type: "string" }, description: "Tools by their names" },
    query: { type: "string", description: "What is to be done, in a few words" },
  },
  additionalProperties: false,
} as const;

/** Of a description that stands in the list, in characters. */
const stubLength = 120;

/**
 * Many tools as one list that is cheap to send: each keeps its name and a line of its description, and its schema is had on demand, as the
 * result of the last tool of the list.
 *
 * - X1 The list never changes during a run, so the provider's cache of the prompt holds; schemas come into the conversation at its end.
 * - X2 A tool is called by its own name, so gate, journal and permissions see that name.
 * - X3 A call whose arguments do not fit is answered with the schema: a model that guessed needs no search.
 */
export function toolSearch(options: ToolSearchOptions): readonly Tool[] {
  const { tools, keep = [], from = 20, maxResults = 5, name = "search_tools" } = options;
  const known = new Map(tools.map((each) => [each.name, each]));
  for (const kept of keep)
    if (!known.has(kept))
      throw new Fault("invalid_argument", `keep names ${kept}, which is not one of the tools`);
  if (known.has(name))
    throw new Fault("already_exists", `a tool is named ${name} already: give the search another name`);
  if (tools.length < from) return tools;
  const hidden = tools.filter((each) => !keep.includes(each.name));
  const search = tool({
    name,
    description: `Gives the arguments of tools that are listed without them: by their names, or up to ${maxResults} by what is to be done. Then call the tool by its name.`,
    inputSchema: input,
    execute: ({ names = [], query = "" }) => {
      const unknown = names.filter((each) => !known.has(each));
      const named = names.flatMap((each) => known.get(each) ?? []);
      const found = query.trim() === "" ? [] : rankTools(hidden, query, maxResults);
      const given = [...new Set([...named, ...found])].slice(0, Math.max(maxResults, names.length));
      const facts = { query, names, given: given.map((each) => each.name) };
      if (names.length === 0 && query.trim() === "") return errorResult("say names or a query", facts);
      const lines = given.map(described);
      if (unknown.length > 0) lines.push(`[there is no tool ${unknown.join(", ")}]`);
      if (given.length > 0) return textResult(lines.join("\n\n"), facts);
      return errorResult(
        [...lines, `no tool fits ${JSON.stringify(query)}: try other words`].join("\n"),
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
  const { name, risk, destructive, edits, concurrency, timeoutMs, suspends } = whole;
  return Object.freeze({
    name,
    risk,
    destructive,
    edits,
    concurrency,
    timeoutMs,
    suspends,
    description: `${line} [arguments: ask ${search}]`,
    inputSchema: anyInput,
    parse,
    needsApproval: (given: unknown) => whole.needsApproval(given),
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
