import { canonicalJson, Fault, type Model, type ModelRequest } from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";

/** A model that counts the input tokens of a request. */
export type CountingModel = Model & Required<Pick<Model, "countTokens">>;

export function canCount(model: Model): model is CountingModel {
  return model.countTokens !== undefined;
}

/**
 * B1: asks the model for the input tokens of a request. The count is journaled with the reservation that uses it,
 * so that the next owner does not ask again for the same request. S4: if the model throws, the error is recorded,
 * and the result is `undefined`; the bound by bytes then applies.
 */
export async function countInput(
  step: ActiveStep,
  model: CountingModel,
  request: ModelRequest,
): Promise<number | undefined> {
  const { runner, address, cancelScope } = step;
  const { taskId, task, log } = runner;
  const digest = digestOf(step, model, request);
  const known = task.counts.get(address);
  if (known?.digest === digest) return known.tokens;
  try {
    const tokens = requireCount(model, await ask(step, model, request));
    log.add({ counts: [{ taskId, address, digest, tokens }] });
    return tokens;
  } catch (error) {
    cancelScope.check();
    step.emit({ type: "hook_error", data: { hook: "countTokens", failure: Fault.from(error).toJSON() } });
    return undefined;
  }
}

/**
 * Asks the model for a count. C2, H7: the question is a call in flight: the task keeps its seat, and a cancelled
 * task abandons the call.
 */
async function ask(step: ActiveStep, model: CountingModel, request: ModelRequest): Promise<number> {
  const { runner, cancelScope } = step;
  const call = await step.begin();
  const abandoned = Promise.withResolvers<never>();
  call.body = { abandon: abandoned.reject };
  try {
    const count = model.countTokens(request, { signal: cancelScope.signal, meta: runner.meta });
    return await runner.activity.whileAlive(Promise.race([count, abandoned.promise]), cancelScope);
  } finally {
    step.end();
  }
}

function requireCount({ provider, modelId }: Model, tokens: unknown): number {
  if (typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens >= 0) return tokens;
  throw new Fault(
    "invalid_argument",
    `countTokens of ${provider}/${modelId} returned ${String(tokens)}: expected an integer from 0`,
  );
}

/**
 * Returns a digest of the counted request. After a crash, middleware and ephemeral messages may lead to another
 * request.
 */
function digestOf({ runner }: ActiveStep, { provider, modelId }: Model, request: ModelRequest): string {
  return runner.worker.hash(canonicalJson({ provider, modelId, request }));
}
