import { Fault, type ChatContext, type DeltaFilter, type ErrorKind, type Model } from "../../kernel/index.ts";
import { failureKind } from "./failure-kind.ts";
import type { Layer } from "./layer.ts";

export interface ModelFallbackOptions {
  /** Asked in this order once the agent's own model has failed. */
  readonly models: readonly Model[];
  /** Which kinds of failure. Unless told: all but those the next model would meet as well. */
  readonly kinds?: readonly ErrorKind[];
}

const elsewhereToo: readonly ErrorKind[] = ["context_overflow", "content_blocked", "format_error"];

/** Asks the next model when one fails, unless watchers have been shown a piece of its answer: they would see two. */
export function modelFallback({ models, kinds }: ModelFallbackOptions): Layer {
  if (models.length === 0) return { name: "model-fallback" };
  const wanted = kinds && new Set(kinds);
  const falls = (kind: ErrorKind | undefined): boolean =>
    kind !== undefined && (wanted === undefined ? !elsewhereToo.includes(kind) : wanted.has(kind));
  return {
    name: "model-fallback",
    chat: async (context, next) => {
      const shown = watch(context);
      const { model: first } = context;
      let failed: unknown;
      for (const model of [first, ...models]) {
        context.model = model;
        try {
          await next();
          return;
        } catch (error) {
          failed = error;
          note(context, model, error);
          if (shown() || !falls(failureKind(error))) break;
        }
      }
      // M4: a call made again from around starts with the first.
      context.model = first;
      throw failed;
    },
  };
}

/** Whether anything has been let through to watchers. */
function watch({ streaming, filters }: ChatContext): () => boolean {
  if (!streaming) return () => false;
  let shown = false;
  const filter: DeltaFilter = {
    push: (delta) => {
      shown ||= delta.text !== "";
      return [delta];
    },
    flush: () => [],
  };
  filters.push(filter);
  return () => shown;
}

/** Who failed before the one that answered, for the layers around. */
function note({ metadata }: ChatContext, { provider, modelId }: Model, error: unknown): void {
  const earlier = (metadata["fallenBackFrom"] ?? []) as readonly object[];
  metadata["fallenBackFrom"] = [...earlier, { provider, modelId, code: Fault.from(error).code }];
}
