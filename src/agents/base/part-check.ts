import {
  checkChoice,
  checkMethods,
  checkOptionalMethods,
  describeKind,
  describeValue,
  Fault,
  is,
  isPromise,
  type Architecture,
  type Extension,
  type Guardrail,
  type OptionKind,
  readProperty,
  type Tool,
} from "../../kernel/index.ts";

const stages: readonly (keyof Guardrail)[] = [
  "onTurnStart",
  "onInput",
  "beforeCall",
  "afterCall",
  "onOutput",
];

/** Throws for a guardrail that checks nothing, for example because its methods are misspelt. */
export function checkGuardrail(guardrail: Guardrail, owner: string): void {
  const place = `guardrail ${describeName(guardrail)} of ${owner}`;
  requireObject(place, guardrail);
  checkOptionalMethods(place, guardrail, stages);
  checkChoice(place, "onError", guardrail.onError, ["block", "allow"]);
}

/** Option kind for a list of parts that `check` accepts. `example` is a valid entry, for the error. */
export function partsLike(
  option: string,
  example: string,
  check?: (each: never, owner: string) => void,
): OptionKind<never> {
  const hint = `use ${option}: [${example}]`;
  if (check === undefined) return is.list({ hint });
  return is.list({ hint, of: is.checkedBy((each, _option, owner) => check(each, owner)) });
}

/**
 * Option kinds of the parts of an agent that judge tool calls. They are checked, because a part of another kind
 * would let every call pass.
 */
export const gateKinds = {
  guardrails: partsLike("guardrails", "guardrail", checkGuardrail),
  permissions: is.withMethods(["check"], "use permissions({ ... })"),
  toolHooks: is.withMethods(
    ["preTool", "postTool"],
    "use toolHooks(); a HookManager is the option hooks of new Agent()",
  ),
} as const;

/** Throws for extensions without a method `setup`, and for two extensions with the same name. */
export function checkExtensions(extensions: readonly Extension[], owner: string): void {
  const names = new Set<string>();
  for (const extension of extensions) {
    const place = `extension ${describeName(extension)} of ${owner}`;
    requireObject(place, extension);
    const { name } = extension;
    if (typeof name !== "string" || name === "")
      throw new Fault("invalid_argument", `invalid ${place}: expected a name`);
    checkMethods(place, extension, ["setup"], "use { name, setup(api) { api.on(type, handler) } }");
    if (names.has(name))
      throw new Fault("invalid_argument", `${owner} has two extensions named ${name}; rename one of them`);
    names.add(name);
  }
}

/** Throws for a part that is not an object, such as a function that creates the part and was not called. */
function requireObject(place: string, value: unknown): void {
  if (typeof value === "object" && value !== null) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${place}: expected an object, not ${describeValue(value)}${callIt(value)}`,
  );
}

/** Returns a hint to call a function that was passed instead of its result. Empty for other values. */
function callIt(value: unknown): string {
  if (typeof value !== "function") return "";
  return value.name === "" ? "" : `; if ${value.name} creates it, use ${value.name}()`;
}

/** Throws for an architecture without the required methods. `place` names the option that contains it. */
export function checkArchitecture(architecture: Architecture, place: string): Architecture {
  requireObject(place, architecture);
  checkMethods(
    place,
    architecture,
    ["run", "declaredWorkers"],
    "expected { name, run, declaredWorkers }; an architecture without workers has declaredWorkers: () => ({})",
  );
  return architecture;
}

/**
 * Throws for tools that are given by name, as in the AI SDK and Mastra, instead of as a list, and for entries of
 * the list that are not objects.
 */
export function checkToolList(owner: string, tools: unknown): void {
  if (tools === undefined || tools === null || typeof tools === "function") return;
  if (Array.isArray(tools)) {
    for (const [index, each] of (tools as readonly Tool[]).entries())
      if (typeof each !== "object" || each === null) checkTool(each, placeIn(index));
    return;
  }
  throw new Fault(
    "invalid_argument",
    `invalid tools of ${owner}: expected a list of tools, not ${describeKind(tools)}; use ${listFor(tools)}`,
  );
}

/** Names a tool of a list by its position, counted from 0. */
export function placeIn(index: number): string {
  return `tool ${index + 1} of the list`;
}

/** Returns what to use in place of a value that is not a list of tools. */
function listFor(tools: unknown): string {
  if (isPromise(tools)) return "tools: await ..., because a promise is no list";
  if (typeof readProperty(tools, "tools") === "function") return "tools: await servers.tools()";
  return "tools: [tool({ name, description, inputSchema, execute })]";
}

/** Throws for a tool that could not be called. `place` names the tool in its list, if the tool has no name. */
export function checkTool(tool: Tool, place?: string): void {
  const isUnnamed = typeof readProperty(tool, "name") !== "string";
  const what = isUnnamed && place !== undefined ? place : `tool ${describeName(tool)}`;
  const use = "use tool({ name, description, inputSchema, execute })";
  if (typeof readProperty(tool, "asTool") === "function")
    throw new Fault(
      "invalid_argument",
      `invalid ${what}: it is an agent; use subAgents: [agent], or tools: [agent.asTool()]`,
    );
  if (tool !== null && typeof tool === "object" && !("parse" in tool) && "execute" in tool)
    throw new Fault(
      "invalid_argument",
      `invalid ${what}: it was not created by tool() of reeve; ${use} imported from "reeve"${isUnnamed ? ", because a tool of the AI SDK has no name" : ""}`,
    );
  checkMethods(what, tool ?? {}, ["execute", "parse", "needsApproval"], use);
}

/** The name of a part for an error. */
function describeName(value: { readonly name?: unknown } | null | undefined): string {
  const name = value?.name;
  if (name === "") return "without a name";
  return typeof name === "string" ? name : describeValue(name);
}

/** Throws for a value that is not an agent. `place` names the value. */
export function checkAgent(place: string, value: unknown): void {
  if (typeof value === "object" && value !== null && "run" in value) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${place}: ${describeValue(value)} is no agent; use new Agent({ ... })`,
  );
}

/** Throws for a value that is neither an agent nor the settings of one. `place` names the value. */
export function checkSubAgent(place: string, value: unknown): void {
  if (typeof value === "object" && value !== null && ("agent" in value || "run" in value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${place}: ${describeValue(value)} is no agent; expected an agent, or { agent, ... } with its settings`,
  );
}
