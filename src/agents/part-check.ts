import {
  checkChoice,
  checkMethods,
  checkOptionalMethods,
  describeValue,
  Fault,
  type Architecture,
  type Guardrail,
  type Tool,
} from "../kernel/index.ts";

const stages: readonly (keyof Guardrail)[] = [
  "onTurnStart",
  "onInput",
  "beforeCall",
  "afterCall",
  "onOutput",
];

/** Refuses a guardrail that checks nothing, for example because its methods are misspelt. */
export function checkGuardrail(guardrail: Guardrail, owner: string): void {
  const place = `guardrail ${describeName(guardrail)} of ${owner}`;
  checkOptionalMethods(place, guardrail, stages);
  checkChoice(place, "onError", guardrail.onError, ["block", "allow"]);
}

/** Refuses an architecture without the methods of the contract. `place` names the option that holds it. */
export function checkArchitecture(architecture: Architecture, place: string): Architecture {
  checkMethods(
    place,
    architecture,
    ["run", "declaredWorkers"],
    "expected { name, run, declaredWorkers }; an architecture without workers has declaredWorkers: () => ({})",
  );
  return architecture;
}

/**
 * Refuses tools that are keyed by name, as the AI SDK and Mastra write them, instead of listed, and members of the list
 * that are no objects.
 */
export function checkToolList(owner: string, tools: unknown): void {
  if (tools === undefined || tools === null || typeof tools === "function") return;
  if (Array.isArray(tools)) {
    for (const each of tools as readonly Tool[])
      if (typeof each !== "object" || each === null) checkTool(each);
    return;
  }
  throw new Fault(
    "invalid_argument",
    `invalid tools of ${owner}: expected a list of tools, not ${describeValue(tools)}; use tools: [tool({ name, description, inputSchema, execute })]`,
  );
}

/** Refuses a tool that could not be called. */
export function checkTool(tool: Tool): void {
  if (tool !== null && typeof tool === "object" && !("parse" in tool) && "execute" in tool)
    throw new Fault(
      "invalid_argument",
      `invalid tool ${describeName(tool)}: it was not created by tool() of reeve; use tool({ name, description, inputSchema, execute }) imported from "reeve"`,
    );
  checkMethods(
    `tool ${describeName(tool)}`,
    tool ?? {},
    ["execute", "parse", "needsApproval"],
    "use tool({ name, description, inputSchema, execute })",
  );
}

/** The name of a part for an error. */
export function describeName(value: { readonly name?: unknown } | null | undefined): string {
  const name = value?.name;
  return typeof name === "string" ? name : describeValue(name);
}

/** Refuses a value that is neither an agent nor the settings of one. `place` names the value. */
export function checkSubAgent(place: string, value: unknown): void {
  if (typeof value === "object" && value !== null && ("agent" in value || "run" in value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${place}: ${describeValue(value)} is no agent; expected an agent, or { agent, ... } with its settings`,
  );
}
