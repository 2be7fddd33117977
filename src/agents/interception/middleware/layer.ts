import {
  checkChoice,
  checkMethods,
  describeValue,
  Fault,
  nearestName,
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

/** A named group of middleware for one or more levels. F1: it takes part only in the levels that it defines. */
export interface Layer {
  /** The name, used in faults and in the log. */
  readonly name?: string;
  /** Runs around `agent.run()`, and again when the run is replayed. */
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

/** An object with `process`, for the level that it names itself. */
export type LevelMiddleware =
  | (AgentMiddleware & AtLevel<"agent">)
  | (ChatMiddleware & AtLevel<"chat">)
  | (FunctionMiddleware & AtLevel<"function">);

const levels = ["agent", "chat", "function"] as const;

export type Level = (typeof levels)[number];

/** The parts of an entry of the option `middleware`, read once. */
export interface ReadLayer {
  readonly name: string | undefined;
  readonly agent: Stage<AgentRunContext> | undefined;
  readonly chat: Stage<ChatContext> | undefined;
  readonly function: Stage<FunctionContext> | undefined;
}

/**
 * Reads an entry of the option `middleware`. Refuses an entry that would take part in no level. An entry without
 * anything but a name is a layer that its options have switched off.
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
  return layer;
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
