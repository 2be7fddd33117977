import { countIn, isObject, type Json, nameIn } from "./json-values.ts";
import { oneOf, type Findings } from "./request-shape.ts";
import type { StreamedUsage, Wire } from "./wire.ts";

/** The common parts of both OpenAI protocols. */
export const openAi: Pick<Wire, "name" | "authorize" | "error"> = {
  name: "openai",
  authorize: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  error: (status, message) => ({
    error: {
      message,
      type: status < 500 ? "invalid_request_error" : "server_error",
      code: errorCode(status),
      param: null,
    },
  }),
};

/** Checks the tier of a request. Tiers that cost at most the list price are allowed. */
export const serviceTier = oneOf(["auto", "default", "flex"], nameIn);

/** Tools that the program itself executes. Every other tool runs at the provider and costs extra. */
const clientTools: ReadonlySet<unknown> = new Set([
  "function",
  "custom",
  "local_shell",
  "apply_patch",
  "computer_use_preview",
]);

export function checkTools(tools: unknown, found: Findings): void {
  found.list("tools", tools, ({ type, tools: inner, environment }) => {
    // A namespace is a list of tools under one name.
    if (type === "namespace") checkTools(inner, found);
    else if (type === "shell") checkShell(environment, found);
    else if (!clientTools.has(type)) found.unbounded.add(nameIn(type));
  });
}

/** Checks where a shell tool runs: at the program, or in a container of the provider. */
function checkShell(environment: unknown, found: Findings): void {
  const isLocal = environment === undefined || environment === null;
  if (!isLocal && !(isObject(environment) && environment["type"] === "local"))
    found.unbounded.add("shell in a container");
}

/** Reads the usage of an answer, whose counts begin with `input` and `output`. */
export function openAiUsage(usage: Json, input: string, output: string): StreamedUsage {
  const detailOf = (name: string, count: string): number => {
    const details = usage[`${name}_tokens_details`];
    return (isObject(details) ? countIn(details[count]) : undefined) ?? 0;
  };
  const inputTokens = countIn(usage[`${input}_tokens`]);
  const outputTokens = countIn(usage[`${output}_tokens`]);
  return {
    ...(inputTokens !== undefined && { inputTokens, cacheReadTokens: detailOf(input, "cached_tokens") }),
    ...(outputTokens !== undefined && {
      outputTokens,
      reasoningTokens: detailOf(output, "reasoning_tokens"),
    }),
  };
}

function errorCode(status: number): string {
  if (status === 401) return "invalid_api_key";
  if (status === 402) return "insufficient_quota";
  return status === 404 ? "not_found" : "refused";
}
