import {
  describeValue,
  Fault,
  type AgentMiddleware,
  type CallPath,
  type ChatMiddleware,
  type FunctionMiddleware,
} from "../../../kernel/index.ts";
import {
  readLayer,
  type Layer,
  type Level,
  type LevelMiddleware,
  type ReadLayer,
  type Stage,
} from "./layer.ts";
import { compose, type NamedStage } from "./compose.ts";

/**
 * Combines middleware for the three levels, the first one outermost, and throws for middleware without a level. F1:
 * this happens only once; a level without middleware is `undefined`.
 */
export class MiddlewarePipeline {
  readonly agent: AgentMiddleware | undefined;
  readonly chat: ChatMiddleware | undefined;
  readonly function: FunctionMiddleware | undefined;
  /** Number of middleware functions around a call, by level. */
  readonly depth: Readonly<Record<Level, number>>;
  /** Names of the middleware with the level `agent` and no other. */
  readonly #ofRunsOnly: readonly string[];
  /** Names of the middleware. */
  readonly names: ReadonlySet<string>;

  constructor(middleware: readonly (Layer | LevelMiddleware)[]) {
    if (!Array.isArray(middleware))
      throw new Fault(
        "invalid_argument",
        `invalid middleware: expected an array, not ${describeValue(middleware)}`,
      );
    const layers = middleware.map(readLayer);
    this.names = new Set(layers.flatMap(({ name }) => name ?? []));
    const agent = at(layers, "agent", (layer) => layer.agent);
    const chat = at(layers, "chat", (layer) => layer.chat);
    const tool = at(layers, "function", (layer) => layer.function);
    this.#ofRunsOnly = layers.flatMap(({ name, ...levels }, index) =>
      levels.agent !== undefined && (levels.chat ?? levels.function) === undefined
        ? [name ?? `${index + 1}`]
        : [],
    );
    this.agent = compose(agent);
    this.chat = compose(chat);
    this.function = compose(tool);
    this.depth = Object.freeze({ agent: agent.length, chat: chat.length, function: tool.length });
  }

  /**
   * Returns the middleware around the model calls and tool calls of a custom agent, with the checks in `more`.
   * `undefined` if there is none. The level `agent` is not included: middleware with only this level throws. An
   * `around` in `more` also throws if there is middleware of its level, because only one of the two would be
   * called.
   */
  callPath(more: CallPath = {}): CallPath | undefined {
    const [lost] = this.#ofRunsOnly;
    if (lost !== undefined)
      throw new Fault(
        "invalid_argument",
        `middleware ${lost} has only the level agent, so that no call would pass it: a call path is around model calls and tool calls; use new Agent({ middleware })`,
      );
    if (this.chat !== undefined) refuseSecond("model", "chat", more.model?.around);
    if (this.function !== undefined) refuseSecond("tool", "function", more.tool?.around);
    const path: CallPath = {
      ...more,
      ...(this.chat && { model: { ...more.model, around: this.chat } }),
      ...(this.function && { tool: { ...more.tool, around: this.function } }),
    };
    return Object.keys(path).length === 0 ? undefined : Object.freeze(path);
  }
}

function refuseSecond(call: "model" | "tool", level: Level, around: object | undefined): void {
  if (around === undefined) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${call}.around of callPath(): the middleware of the level ${level} would replace it; use new MiddlewarePipeline([..., { ${level}: around }])`,
  );
}

function at<Context>(
  layers: readonly ReadLayer[],
  level: Level,
  pick: (layer: ReadLayer) => Stage<Context> | undefined,
): readonly NamedStage<Context>[] {
  return layers.flatMap((layer, index) => {
    const stage = pick(layer);
    return stage === undefined ? [] : [{ name: layer.name ?? `${level} ${index + 1}`, stage }];
  });
}
