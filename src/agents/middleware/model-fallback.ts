import {
  eventDraft,
  Fault,
  mayBeAnsweredElsewhere,
  type ChatContext,
  type DeltaFilter,
  type ErrorKind,
  type Model,
} from "../../kernel/index.ts";
import { failureKind } from "./failure-kind.ts";
import type { Layer } from "./layer.ts";

export interface ModelFallbackOptions {
  /** Asked in this order once the agent's own model has failed. */
  readonly models: readonly Model[];
  /** Which kinds of failure. Unless told: all but those the next model would meet as well. */
  readonly kinds?: readonly ErrorKind[];
}

/**
 * Asks the next model when one has failed for good, its retries included, unless watchers have been shown a piece of its answer: they would
 * see two. Each is asked through the layers further in. `fallback([...])` is for asking the next at once.
 */
export function modelFallback({ models, kinds }: ModelFallbackOptions): Layer {
  if (models.length === 0) return { name: "model-fallback" };
  const wanted = kinds && new Set(kinds);
  const falls = (kind: ErrorKind): boolean =>
    wanted === undefined ? mayBeAnsweredElsewhere(kind) : wanted.has(kind);
  return {
    name: "model-fallback",
    chat: async (context, next) => {
      const shown = watch(context);
      const { model: first } = context;
      const left = [...models];
      for (;;) {
        try {
          await next();
          return;
        } catch (error) {
          const { model } = context;
          note(context, model, error);
          const kind = failureKind(error);
          const to = left.shift();
          if (to === undefined || kind === undefined || shown() || !falls(kind)) {
            // M4: a call made again from around starts with the first.
            context.model = first;
            throw error;
          }
          const { message } = Fault.from(error);
          context.emitEvent(
            eventDraft("model_fallback", { from: nameOf(model), to: nameOf(to), kind, message }),
          );
          context.model = to;
        }
      }
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

function nameOf({ provider, modelId }: Model): Pick<Model, "provider" | "modelId"> {
  return { provider, modelId };
}

/** Who failed before the one that answered, for the layers around. */
function note({ metadata }: ChatContext, { provider, modelId }: Model, error: unknown): void {
  const earlier = (metadata["fallenBackFrom"] ?? []) as readonly object[];
  metadata["fallenBackFrom"] = [...earlier, { provider, modelId, code: Fault.from(error).code }];
}
