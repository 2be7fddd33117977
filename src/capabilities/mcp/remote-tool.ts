import type { Tool as ListedTool } from "@modelcontextprotocol/client";
import {
  Fault,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type Tool,
  type ToolRisk,
} from "../../kernel/index.ts";
import { JsonSchemaCheck } from "../tools/json-schema-check.ts";
import { toolSchema } from "../tools/schema-reader.ts";
import type { Connection } from "./connection.ts";
import { askInRun } from "./elicitation.ts";
import { remoteResult } from "./remote-result.ts";

/** J6: key in the `_meta` of a request under which a Reeve server finds the idempotency key of a call. */
export const idempotencyMeta = "reeve/idempotencyKey";

/** Converts a server's tool to a `Tool`. The connection handles timeouts, restarts and error messages. */
export function remoteTool(name: string, connection: Connection, listed: ListedTool): Tool<JsonObject> {
  const { config } = connection;
  const trusted = config.trustAnnotations === true ? listed.annotations : undefined;
  const { risk, destructive, harmless } = riskOf(trusted);
  const inputSchema = listed.inputSchema as JsonSchema;
  return Object.freeze({
    name,
    description: listed.description ?? listed.title ?? trusted?.title ?? "",
    inputSchema,
    origin: { server: connection.name, name: listed.name },
    risk: config.risk?.[listed.name] ?? risk,
    destructive,
    edits: false,
    concurrency: harmless ? "parallel" : "sequential",
    // The connection has its own timeout, which pauses while the server asks a person.
    timeoutMs: null,
    suspends: false,
    needsApproval: () => false,
    parse: inputReader(name, inputSchema),
    execute: async (input, context) => {
      const { signal, progress, idempotencyKey } = context;
      const params = { name: listed.name, arguments: input, _meta: { [idempotencyMeta]: idempotencyKey } };
      const result = await connection.call(
        `tool ${listed.name}`,
        (client, options) => client.callTool(params, options),
        { signal, progress, onElicitation: (question) => askInRun(connection.name, context, name, question) },
      );
      return remoteResult(result);
    },
  } satisfies Tool<JsonObject>);
}

/**
 * Returns the risk of a tool from trusted annotations. Without trusted annotations, the tool counts as risky and
 * destructive.
 */
function riskOf(trusted: ListedTool["annotations"]): {
  readonly risk: ToolRisk;
  readonly destructive: boolean;
  readonly harmless: boolean;
} {
  if (trusted?.readOnlyHint === true) return { risk: "safe", destructive: false, harmless: true };
  return { risk: "high", destructive: trusted?.destructiveHint ?? true, harmless: false };
}

/**
 * T1: returns a function that validates the input. If the server's schema is malformed, only the server validates
 * the input.
 */
function inputReader(name: string, schema: JsonSchema): (input: JsonValue) => Promise<JsonObject> {
  const owner = toolSchema(name);
  const check = new JsonSchemaCheck(owner.schemaName, schema);
  return async (input) => {
    if (typeof input !== "object" || input === null || Array.isArray(input))
      throw owner.refuse(["the input must be an object"]);
    const problems = await problemsOf(check, input as JsonObject);
    if (problems.length > 0) throw owner.refuse(problems);
    return input as JsonObject;
  };
}

async function problemsOf(check: JsonSchemaCheck, input: JsonObject): Promise<readonly string[]> {
  try {
    return await check.problems(input);
  } catch (error) {
    if (Fault.is(error)) return [];
    throw error;
  }
}
