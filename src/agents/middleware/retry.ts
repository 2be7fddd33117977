import {
  classifyError,
  errorKinds,
  eventDraft,
  Fault,
  retryDelayMs,
  retrySettings,
  type ChatContext,
  type Clock,
  type ErrorKind,
  type FunctionContext,
  type Random,
  type RetrySettings,
} from "../../kernel/index.ts";
import { failureKind } from "./failure-kind.ts";
import type { Layer } from "./layer.ts";
import { pause } from "./pause.ts";
import { selects, type ToolSelection } from "./tool-selection.ts";

export interface RetryOptions extends Partial<Omit<RetrySettings, "enabled">> {
  readonly clock: Clock;
  readonly random: Random;
  /** Which kinds of failure. Unless told: those that may pass by waiting. */
  readonly kinds?: readonly ErrorKind[];
  /** Model calls. The runtime has tried again already by its own settings when this layer is asked. On unless told. */
  readonly chat?: boolean;
  /** Which tools; none unless told, since a repeat is a second effect. The tool gets the same `idempotencyKey` (J6). */
  readonly tools?: ToolSelection;
}

/** Calls again after a failure that may pass, later each time, and never sooner than the provider asked for. */
export function retry(options: RetryOptions): Layer {
  const { clock, random, chat = true, tools, kinds = passing } = options;
  const settings = retrySettings({ ...options, enabled: true });
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
      // As the layers inside left it: they may have taken something out.
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
  /** A result that says it failed is not thrown when nothing is left to try. */
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

/** T2: a tool that fails is a result. */
function failureOf({ result }: FunctionContext): unknown {
  if (result === undefined || !result.isError) return undefined;
  const { output } = result;
  return new Fault("tool_failed", output.type === "text" ? output.text : "the tool says that it failed");
}

/** The runtime's fault stands for what the provider said. */
function causeOf(error: unknown): unknown {
  return Fault.is(error) && error.cause !== undefined ? error.cause : error;
}
