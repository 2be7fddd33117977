import {
  checkChoice,
  checkMethods,
  describeValue,
  Fault,
  nearestName,
  readProperty,
  refuseOtherParts,
  type AgentMiddleware,
  type AgentRunContext,
  type ChatContext,
  type ChatMiddleware,
  type FunctionContext,
  type FunctionMiddleware,
  type Middleware,
  type MiddlewareFunction,
} from "../../../kernel/index.ts";

/** Middleware for one level: an object with `process`, or a function. */
export type Stage<Context> = Middleware<Context> | MiddlewareFunction<Context>;

/** A named group of middleware for one or more levels. F1: it runs only on the levels that it defines. */
export interface Layer {
  /** The name, used in faults and in the log. */
  readonly name?: string;
  /** Runs around `agent.run()`, and again when a replay executes the run. */
  readonly agent?: Stage<AgentRunContext>;
  /** Runs around each model call. */
  readonly chat?: Stage<ChatContext>;
  /** Runs around each tool call. */
  readonly function?: Stage<FunctionContext>;
}

interface AtLevel<Name extends string> {
  /** The name, used in faults and in the log. */
  readonly name?: string;
  /** What the middleware runs around: `agent.run()`, each model call, or each tool call. */
  readonly level: Name;
}

/** Middleware with `process` for one level, which it names itself. */
export type LevelMiddleware =
  | (AgentMiddleware & AtLevel<"agent">)
  | (ChatMiddleware & AtLevel<"chat">)
  | (FunctionMiddleware & AtLevel<"function">);

const levels = ["agent", "chat", "function"] as const;

export type Level = (typeof levels)[number];

/** The parts of an entry of the option `middleware`, after they were read once. */
export interface ReadLayer {
  readonly name: string | undefined;
  readonly agent: Stage<AgentRunContext> | undefined;
  readonly chat: Stage<ChatContext> | undefined;
  readonly function: Stage<FunctionContext> | undefined;
}

/**
 * Reads an entry of the option `middleware`. Throws for an entry that would run on no level, and for one with a
 * function that no call would use. An entry with only a name is a layer that its options have switched off.
 */
export function readLayer(entry: Layer | LevelMiddleware, index: number): ReadLayer {
  if (typeof entry !== "object" || entry === null)
    throw new Fault(
      "invalid_argument",
      `invalid middleware ${index + 1}: ${describeValue(entry)} has no level; use { chat: ... }, with one of ${levels.join(", ")}`,
    );
  const { name } = entry;
  const place = `middleware ${typeof name === "string" && name !== "" ? name : index + 1}`;
  const layer = atOwnLevel(entry, place) ?? atLevels(entry, place);
  if (layer.agent === undefined && layer.chat === undefined && layer.function === undefined)
    refuseWithoutLevel(entry, place);
  else refuseOtherLevels(entry, layer, place);
  return layer;
}

/** Reads an object with `process` and `level`. */
function atOwnLevel(entry: Layer | LevelMiddleware, place: string): ReadLayer | undefined {
  if (!("level" in entry) || entry.level === undefined) return undefined;
  const { name, level } = entry;
  checkChoice(place, "level", level, levels);
  checkMethods(place, entry, ["process"]);
  return { name, agent: undefined, chat: undefined, function: undefined, [level]: entry };
}

function atLevels(entry: Layer | LevelMiddleware, place: string): ReadLayer {
  const { name, agent, chat, function: tool } = entry as Layer;
  const layer = { name, agent, chat, function: tool };
  for (const level of levels)
    if (typeof layer[level] !== "function") checkMethods(`${level} of ${place}`, layer[level], ["process"]);
  return {
    name,
    agent: ownStage(agent, entry),
    chat: ownStage(chat, entry),
    function: ownStage(tool, entry),
  };
}

/** Binds a method to its object, so that an instance of a class keeps its state. */
function ownStage<Context>(stage: Stage<Context> | undefined, entry: object): Stage<Context> | undefined {
  return typeof stage === "function" ? stage.bind(entry) : stage;
}

/** The names of methods that only callers of a layer use and no call runs through, by layer. */
const forCallers = new WeakMap<object, readonly string[]>();

/**
 * Adds methods to a layer that its owner can call. They are not enumerable, so that a copy of the layer has only
 * levels.
 */
export function withCallerMethods<Methods extends object>(layer: Layer, methods: Methods): Layer & Methods {
  for (const [name, value] of Object.entries(methods)) Object.defineProperty(layer, name, { value });
  forCallers.set(layer, Object.keys(methods));
  return layer as Layer & Methods;
}

/** Names of the levels in other frameworks. */
const otherWords: ReadonlyMap<string, Level> = new Map([
  ["tool", "function"],
  ["tools", "function"],
  ["model", "chat"],
  ["llm", "chat"],
  ["run", "agent"],
]);

/**
 * Throws for a member of an entry that could be middleware but is not a level, because no call would run through
 * it. An object at a level may have its own methods, but none with the name of a level.
 */
function refuseOtherLevels(entry: object, layer: ReadLayer, place: string): void {
  const hasOwnLevel = "level" in entry && entry.level !== undefined;
  const known = [...(hasOwnLevel ? ["process"] : levels), ...(forCallers.get(entry) ?? [])];
  refuseOtherParts(place, entry, known, (name) => lost(name, hasOwnLevel));
  for (const level of hasOwnLevel ? [] : levels) refuseLevelsWithin(`${level} of ${place}`, layer[level]);
}

function refuseLevelsWithin(place: string, stage: unknown): void {
  if (typeof stage !== "object" || stage === null) return;
  const other = levels.find((level) => typeof readProperty(stage, level) === "function");
  if (other === undefined) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${place}: only process() of it is called, so that no call would pass ${describeValue(other)}; write it beside the level: { ${other}: ... }`,
  );
}

function lost(name: string, hasOwnLevel: boolean): string {
  return `is no level, so that no call would pass it; ${fixOf(name, hasOwnLevel)}`;
}

function fixOf(other: string, hasOwnLevel: boolean): string {
  const meant = otherWords.get(other.toLowerCase()) ?? nearestName(other, levels);
  const helper = `make a helper a private member (#${other}), or pass an object with process() as { chat: object }`;
  if (hasOwnLevel && meant !== undefined)
    return `beside level, only process() is called; add an entry { ${meant}: ... }`;
  if (hasOwnLevel) return `beside level, only process() is called; ${helper}`;
  if (other === "process")
    return `it is called only beside level; use { level, process }, or the levels ${levels.join(", ")}`;
  return meant === undefined
    ? `expected some of ${levels.join(", ")}; ${helper}`
    : `use ${describeValue(meant)}`;
}

function refuseWithoutLevel(entry: object, place: string): void {
  const all = levels.join(", ");
  if ("process" in entry)
    throw new Fault(
      "invalid_argument",
      `invalid ${place}: it has process(), but no level; add level: "chat", or use { chat: middleware }, with one of ${all}`,
    );
  const members = Object.keys(entry).filter((key) => key !== "name");
  const isInstance =
    Object.getPrototypeOf(entry) !== Object.prototype && Object.getPrototypeOf(entry) !== null;
  if (members.length === 0 && !isInstance) return;
  const [nearest] = members.flatMap((key) => nearestName(key, levels) ?? []);
  const fix = nearest === undefined ? `expected some of ${all}` : `use ${describeValue(nearest)}`;
  throw new Fault("invalid_argument", `invalid ${place}: it has no level; ${fix}`);
}
