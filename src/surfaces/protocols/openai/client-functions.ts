import { tool } from "../../../capabilities/index.ts";
import {
  Fault,
  type ClientTool,
  type JsonObject,
  type JsonValue,
  type RunChanges,
} from "../../../kernel/index.ts";
import type { ServerParts } from "../../http/server-parts.ts";
import { invalidParameter, isObject } from "./openai-parameters.ts";

/** A request with functions that the client executes. */
export interface FunctionRequest {
  readonly tools?: readonly JsonObject[] | null | undefined;
  readonly parallel_tool_calls?: boolean | null | undefined;
}

/**
 * The functions of a request as tools of the run. `undefined` if there are none. Refuses a function that no model could call, one
 * that has the name of a tool of the agent, and tools of other types.
 */
export function functionsOf(
  { tools, parallel_tool_calls: isParallel }: FunctionRequest,
  agent: string,
  { agents }: Pick<ServerParts, "agents">,
): Pick<RunChanges, "clientTools"> | undefined {
  if (tools === undefined || tools === null || tools.length === 0) return undefined;
  if (isParallel === false)
    throw invalidParameter(
      "parallel_tool_calls",
      "parallel_tool_calls: false is not supported with tools: an agent may call several of them in one turn; remove the parameter",
    );
  const own = agents.find(agent).tools;
  const clientTools = tools.map((each, index) => functionOf(each, `tools[${index}]`));
  for (const [index, { name }] of clientTools.entries()) {
    if (clientTools.findIndex((each) => each.name === name) !== index)
      throw invalidParameter(
        `tools[${index}]`,
        `two tools have the name ${JSON.stringify(name)}; rename one of them`,
      );
    if (own.includes(name))
      throw invalidParameter(
        `tools[${index}]`,
        `agent ${agent} has its own tool ${JSON.stringify(name)}; leave it out of the request, or rename it`,
      );
  }
  return { clientTools };
}

/** Reads a function as chat completions write it, `{ type, function }`, or as responses do, `{ type, name }`. */
function functionOf(written: JsonObject, place: string): ClientTool {
  const { type, function: nested } = written;
  if (type !== "function")
    throw invalidParameter(
      place,
      `invalid ${place} of the type ${JSON.stringify(type)}: the agent has its own tools, so a request may only add functions that the client executes`,
    );
  const { name, description, parameters } = isObject(nested) ? nested : written;
  const spec = {
    name: typeof name === "string" ? name : "",
    description: textOf(description) ?? `The function ${textOf(name)} of the client.`,
    inputSchema: isObject(parameters) ? parameters : { type: "object", properties: {} },
  };
  try {
    return specOf(spec);
  } catch (error) {
    throw invalidParameter(place, `invalid ${place}: ${Fault.from(error).message}`);
  }
}

/** Checks a function as the agent will, before a run exists. */
function specOf(spec: ClientTool): ClientTool {
  tool({ ...spec, clientSide: true });
  return spec;
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
