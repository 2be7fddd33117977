import {
  classifyError,
  errorKinds,
  eventDraft,
  Fault,
  retryDelayMs,
  retryKinds,
  type ChatContext,
  type Clock,
  type ErrorKind,
  type FunctionContext,
  type Random,
  type RetrySettings,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { errorKindNames, failureKind } from "./failure-kind.ts";
import type { Layer } from "./layer.ts";
import { pause } from "./pause.ts";
import { selects, toolSelection, type ToolSelection } from "./tool-selection.ts";

export interface RetryOptions extends Partial<Omit<RetrySettings, "enabled">> {
  readonly clock: Clock;
  readonly random: Random;
  /** The kinds of failure to retry. Default: kinds that may pass after a wait. */
  readonly kinds?: readonly ErrorKind[];
  /** Whether this middleware retries model calls, in addition to the runtime's own retries. Default: `true`. */
  readonly chat?: boolean;
  /** The tools to retry. A retry may repeat an effect; the tool gets the same `idempotencyKey` (J6). Default: none. */
  readonly tools?: ToolSelection;
}

const knownOptions = optionTable({
  clock: is.any,
  random: is.any,
  kinds: is.list({ of: is.choice(errorKindNames) }),
  chat: is.boolean({ default: true }),
  tools: toolSelection,
  ...retryKinds,
} satisfies OptionKinds<RetryOptions>);

/**
 * Creates middleware that repeats a call after a failure that may pass, with growing delays. A delay is never
 * shorter than the provider asks for.
 */
export function retry(options: RetryOptions): Layer {
  const { clock, random, chat, tools, kinds = passing, ...schedule } = knownOptions.read("retry()", options);
  const settings = { ...schedule, enabled: true };
  if (settings.maxRetries === 0) return { name: "retry" };
  const retried = new Set<ErrorKind>(kinds);

  async function process(
    context: ChatContext | FunctionContext,
    next: () => Promise<void>,
    failed: () => unknown,
  ): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const error = await attemptOf(next, failed);
      const last = attempt > settings.maxRetries;
      if (error === undefined || last || !isRetried(error.value)) {
        if (attempt > 1) {
          const success = error === undefined;
          context.emitEvent(eventDraft("retry_end", { attempt: attempt - 1, success }));
        }
        if (error?.thrown === true) throw error.value;
        return;
      }
      const { retryAfterMs } = classifyError(causeOf(error.value), { now: clock.now() });
      // The text as inner middleware left it, which may have redacted parts.
      const { message } = Fault.from(error.value);
      const delayMs = retryDelayMs(attempt, settings, random, retryAfterMs);
      const kind = failureKind(error.value) ?? "unknown";
      const { maxRetries: maxAttempts } = settings;
      context.emitEvent(eventDraft("retry_start", { attempt, maxAttempts, delayMs, kind, message }));
      await context.waitFor(pause(clock, delayMs, context.signal));
    }
  }

  function isRetried(error: unknown): boolean {
    const kind = failureKind(error);
    return kind !== undefined && retried.has(kind);
  }

  const selected = tools && selects(tools);
  return {
    name: "retry",
    ...(chat && {
      chat: (context: ChatContext, next: () => Promise<void>) => process(context, next, succeeded),
    }),
    ...(selected && {
      function: (context: FunctionContext, next: () => Promise<void>) =>
        selected(context.tool) ? process(context, next, () => failureOf(context)) : next(),
    }),
  };
}

const passing = (Object.keys(errorKinds) as ErrorKind[]).filter(
  (kind) => errorKinds[kind].retry === "backoff",
);

interface Failed {
  readonly value: unknown;
  /** Whether the failure was thrown. A failed result is returned and not thrown when no attempt is left. */
  readonly thrown: boolean;
}

async function attemptOf(next: () => Promise<void>, failed: () => unknown): Promise<Failed | undefined> {
  try {
    await next();
  } catch (value) {
    return { value, thrown: true };
  }
  const value = failed();
  return value === undefined ? undefined : { value, thrown: false };
}

function succeeded(): undefined {}

/** T2: returns the failure of a tool, which is a result with `isError`. */
function failureOf({ result }: FunctionContext): unknown {
  if (result === undefined || !result.isError) return undefined;
  const { output } = result;
  return new Fault("tool_failed", output.type === "text" ? output.text : "the tool reported a failure");
}

/** Returns the provider's error inside the fault of the runtime. */
function causeOf(error: unknown): unknown {
  return Fault.is(error) && error.cause !== undefined ? error.cause : error;
}
