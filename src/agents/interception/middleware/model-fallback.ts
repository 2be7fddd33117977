import {
  eventDraft,
  Fault,
  mayBeAnsweredElsewhere,
  type ChatContext,
  type DeltaFilter,
  type ErrorKind,
  type Model,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { errorKindNames, failureKind } from "./failure-kind.ts";
import type { Layer } from "./layer.ts";

/** Options of `modelFallback`. */
export interface ModelFallbackOptions {
  /** The models to try in this order after the agent's own model has failed. */
  readonly models: readonly Model[];
  /**
   * The kinds of failure after which the next model is called. Default: all except those with which the next model
   * would fail too.
   */
  readonly kinds?: readonly ErrorKind[];
}

const knownOptions = optionTable({
  models: is.list(),
  kinds: is.list({ of: is.choice(errorKindNames) }),
} satisfies OptionKinds<ModelFallbackOptions>);

/**
 * Creates middleware that calls the next model after one has failed finally, including its retries. It does not if
 * readers have already received a part of the answer. Each model is called through the middleware inside this one.
 * To try the next model immediately, use `fallback([...])`.
 */
export function modelFallback(options: ModelFallbackOptions): Layer {
  const { models, kinds } = knownOptions.read("modelFallback()", options);
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
            // M4: if outer middleware repeats the call, it starts with the first model again.
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

/** Returns a function that says whether readers have received a delta. */
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

/** Records in the metadata which models failed, for outer middleware. */
function note({ metadata }: ChatContext, { provider, modelId }: Model, error: unknown): void {
  const earlier = (metadata["fallenBackFrom"] ?? []) as readonly object[];
  metadata["fallenBackFrom"] = [...earlier, { provider, modelId, code: Fault.from(error).code }];
}
