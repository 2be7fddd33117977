import type { AgentMiddleware, CallPath, ChatMiddleware, FunctionMiddleware } from "../../kernel/index.ts";
import type { Layer, Stage } from "./layer.ts";
import { onion, type NamedStage } from "./onion.ts";

type Level = "agent" | "chat" | "function";

/**
 * One onion for the three levels, the first layer outermost at each. Composed once, here (F1): a level nobody stands at is
 * `undefined`.
 */
export class MiddlewarePipeline {
  readonly agent: AgentMiddleware | undefined;
  readonly chat: ChatMiddleware | undefined;
  readonly function: FunctionMiddleware | undefined;
  /** How many layers a call passes, by level. */
  readonly depth: Readonly<Record<Level, number>>;

  constructor(layers: readonly Layer[]) {
    const agent = at(layers, "agent", (layer) => layer.agent);
    const chat = at(layers, "chat", (layer) => layer.chat);
    const tool = at(layers, "function", (layer) => layer.function);
    this.agent = onion(agent);
    this.chat = onion(chat);
    this.function = onion(tool);
    this.depth = Object.freeze({ agent: agent.length, chat: chat.length, function: tool.length });
  }

  /** What the runtime puts around an agent's calls; `undefined` when nothing stands there. */
  callPath(more: Pick<CallPath, "gate" | "observer"> = {}): CallPath | undefined {
    const path: CallPath = {
      ...more,
      ...(this.chat && { chat: this.chat }),
      ...(this.function && { function: this.function }),
    };
    return Object.keys(path).length === 0 ? undefined : Object.freeze(path);
  }
}

function at<Context>(
  layers: readonly Layer[],
  level: Level,
  pick: (layer: Layer) => Stage<Context> | undefined,
): readonly NamedStage<Context>[] {
  return layers.flatMap((layer, index) => {
    const stage = pick(layer);
    return stage === undefined ? [] : [{ name: layer.name ?? `${level} ${index + 1}`, stage }];
  });
}
