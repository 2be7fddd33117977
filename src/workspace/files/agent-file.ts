import { basename } from "node:path";
import { describeValue, Fault, nearestName, type JsonObject } from "../../kernel/index.ts";
import { readNamedFile, type ReadOptions } from "./text/bounded-file.ts";
import { parseMarkdown } from "./text/front-matter.ts";
import type { Notices } from "./notices.ts";
import { textHash } from "./trust/text-hashes.ts";

/** An agent that a Markdown file describes. */
export interface AgentFile {
  /** Name of the file without `.md`. */
  readonly name: string;
  readonly path: string;
  readonly description?: string;
  /** The model as `provider/id`. */
  readonly model?: string;
  /** Names of tools, patterns such as `mcp__*`, or the sets `none`, `read` and `all`. */
  readonly tools?: readonly string[];
  readonly maxTurns?: number;
  readonly budget?: AgentBudget;
  /** What callers of a server with the scope `run` may add to the budget of a run. */
  readonly topUp?: Omit<AgentBudget, "deadlineMs">;
  /** Name of a registered architecture. */
  readonly architecture?: string;
  /** Names of agents of the workspace that this agent may hire. */
  readonly subAgents?: readonly string[];
  /** The instructions: the text after the front matter. */
  readonly instructions: string;
  /** Hash of the whole text. */
  readonly hash: string;
}

/** The limits of an agent. */
export interface AgentBudget {
  readonly maxTokens?: number;
  readonly maxCostUsd?: number;
  readonly maxTurns?: number;
  readonly deadlineMs?: number;
}

const maxAgentBytes = 256 * 1024;
const budgetKeys = ["maxTokens", "maxCostUsd", "maxTurns", "deadlineMs"] as const;
const topUpKeys = ["maxTokens", "maxCostUsd", "maxTurns"] as const;
const keys = [
  "name",
  "description",
  "model",
  "tools",
  "maxTurns",
  "budget",
  "topUp",
  "architecture",
  "subAgents",
];
const validName = /^[a-z][a-z0-9_-]{0,63}$/iu;

/** Whether a text can be the name of an agent in a file. */
export function isAgentName(name: string): boolean {
  return validName.test(name);
}

/**
 * Reads an agent from a Markdown file. An unknown key is a warning that suggests the nearest one. Throws
 * `invalid_argument`, which names file and key, for a value of the wrong type.
 */
export async function readAgentFile(
  path: string,
  notices: Notices,
  options: Pick<ReadOptions, "within"> = {},
): Promise<AgentFile> {
  const file = await readNamedFile("agent file", path, { maxBytes: maxAgentBytes, ...options });
  if (file === undefined) throw new Fault("not_found", `the agent file ${path} does not exist`);
  if (file.isCut)
    throw new Fault(
      "invalid_argument",
      `invalid agent file ${path}: it is longer than ${maxAgentBytes} bytes`,
    );
  const { data, body } = parseMarkdown(file.text, path);
  for (const key of Object.keys(data)) {
    if (keys.includes(key)) continue;
    const nearest = nearestName(key, keys);
    notices.add(
      "warning",
      path,
      `unknown key ${describeValue(key)}: ${nearest === undefined ? "remove it" : `use "${nearest}"`}`,
    );
  }
  return { ...checked(data, path), path, instructions: body, hash: textHash(file.text) };
}

function checked(data: JsonObject, path: string): Omit<AgentFile, "path" | "instructions" | "hash"> {
  const name = basename(path, ".md");
  const { name: written, description, model, architecture } = data;
  if (written !== undefined && written !== name)
    throw wrong(path, "name", `${JSON.stringify(name)}, the name of the file`, written);
  const tools = textList(data["tools"], path, "tools");
  const subAgents = textList(data["subAgents"], path, "subAgents");
  const maxTurns = number(data["maxTurns"], path, "maxTurns", { isWhole: true });
  const budget = limitsOf(data["budget"], path, "budget", budgetKeys);
  const topUp = limitsOf(data["topUp"], path, "topUp", topUpKeys);
  return {
    name,
    ...optional("description", text(description, path, "description")),
    ...optional("model", text(model, path, "model")),
    ...optional("architecture", text(architecture, path, "architecture")),
    ...optional("tools", tools),
    ...optional("subAgents", subAgents),
    ...optional("maxTurns", maxTurns),
    ...optional("budget", budget),
    ...optional("topUp", topUp),
  };
}

function optional<Key extends string, Value>(
  key: Key,
  value: Value | undefined,
): { readonly [Name in Key]?: Value } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [Name in Key]?: Value });
}

function text(value: unknown, path: string, key: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && value.trim() !== "") return value.trim();
  throw wrong(path, key, "a text", value);
}

/** A list of names may also be one text with commas, as other hosts write it. */
function textList(value: unknown, path: string, key: string): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value.split(/[\s,]+/u).filter(Boolean);
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw wrong(path, key, "a list of texts", value);
}

function number(
  value: unknown,
  path: string,
  key: string,
  { isWhole }: { readonly isWhole: boolean },
): number | undefined {
  if (value === undefined || value === null) return undefined;
  const fits = isWhole
    ? Number.isSafeInteger(value) && (value as number) >= 1
    : Number.isFinite(value) && (value as number) >= 0;
  if (fits) return value as number;
  throw wrong(path, key, isWhole ? "an integer from 1" : "a number from 0", value);
}

/** The limits that a key of the front matter sets. */
function limitsOf<Key extends keyof AgentBudget>(
  value: unknown,
  path: string,
  name: string,
  known: readonly Key[],
): Pick<AgentBudget, Key> | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value))
    throw wrong(path, name, `an object with some of ${known.join(", ")}`, value);
  const entries = Object.entries(value).map(([key, each]) => {
    if (!(known as readonly string[]).includes(key)) {
      const nearest = nearestName(key, known);
      throw new Fault(
        "invalid_argument",
        `unknown key "${name}.${key}" in ${path}: ${nearest === undefined ? `expected some of ${known.join(", ")}` : `use "${name}.${nearest}"`}`,
      );
    }
    return [key, number(each, path, `${name}.${key}`, { isWhole: key !== "maxCostUsd" })] as const;
  });
  return Object.fromEntries(entries.filter(([, each]) => each !== undefined)) as Pick<AgentBudget, Key>;
}

function wrong(path: string, key: string, expected: string, value: unknown): Fault {
  return new Fault(
    "invalid_argument",
    `invalid "${key}" in ${path}: expected ${expected}, not ${describeValue(value)}`,
    {
      details: { path, key },
    },
  );
}
