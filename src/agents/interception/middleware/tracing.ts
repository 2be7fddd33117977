import {
  addUsage,
  eventDraft,
  Fault,
  noUsage,
  priceUsage,
  type AgentRunContext,
  type Attributes,
  type ChatContext,
  type Clock,
  type FunctionContext,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type PriceTable,
  type Span,
  type Telemetry,
  type ReportedUsage,
  type Usage,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { cost, durations, genAi, tokenUsage, type Operation } from "./gen-ai.ts";
import { finishReason, inputMessages, outputMessages, providerName, systemParts } from "./gen-ai-messages.ts";
import type { Layer } from "./layer.ts";
import { safeTelemetry } from "./safe-telemetry.ts";

type Context = AgentRunContext | ChatContext | FunctionContext;

export interface TracingOptions {
  /** The telemetry: `openTelemetry()`, or your own. */
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** Prices for calls whose cost the provider does not report. Default: the prices with which the runtime charges. */
  readonly prices?: PriceTable;
  /**
   * Whether prompts, answers, arguments and results are added. Default: `false`, because they may contain confidential
   * data.
   */
  readonly content?: boolean;
}

const knownOptions = optionTable({
  telemetry: is.any,
  clock: is.any,
  prices: is.any,
  content: is.boolean({ default: false }),
} satisfies OptionKinds<TracingOptions>);

/**
 * Creates middleware that writes nested spans `invoke_agent`, `chat` and `execute_tool` with durations, tokens and
 * costs. The first error of the telemetry is written to the run's log; telemetry errors never affect the run.
 */
export function tracing(options: TracingOptions): Layer {
  const { telemetry, clock, prices, content } = knownOptions.read("tracing()", options);
  const open = openSpans(telemetry);
  let problem: { readonly error: unknown } | undefined;
  let told = false;
  const safe = safeTelemetry(telemetry, (error) => {
    problem ??= { error };
  });

  async function traced(
    context: Context,
    next: () => Promise<void>,
    { name, operation, attributes, describe, after }: TracedCall,
  ): Promise<void> {
    const parent = open.above(context);
    const span = safe.startSpan(`${operation} ${name}`, {
      attributes: { [genAi.operation]: operation, ...attributes, ...whose(context), ...describe() },
      kind: operation === "chat" ? "client" : "internal",
      ...(parent && { parent }),
    });
    if (isRun(context))
      open.begin(context, span, () => span.set({ [genAi.status]: "suspended", ...describe() }));
    const startedAt = clock.now();
    let errorType: string | undefined;
    try {
      await span.during(next);
      errorType = after(span);
    } catch (error) {
      const { code } = Fault.from(error);
      // `internal` is the code of any error without one, such as what a tool's body throws.
      errorType = operation === "execute_tool" && code === "internal" ? toolFailed : code;
      span.fail(error);
      throw error;
    } finally {
      const failed = errorType === undefined ? {} : { [genAi.errorType]: errorType };
      // Again, because the call has changed what it describes, and a call that failed has attributes, too.
      span.set({ ...describe(), ...failed });
      if (isRun(context)) open.forget(context, span);
      span.end();
      const seconds = Math.max(0, clock.now() - startedAt) / 1_000;
      safe.measure(durations[operation], seconds, {
        [genAi.operation]: operation,
        [genAi.agentName]: context.agentName,
        ...attributes,
        ...failed,
      });
      if (problem !== undefined && !told) {
        told = true;
        const failure = Fault.from(problem.error).toJSON();
        context.emitEvent(eventDraft("hook_error", { hook: "tracing", failure }));
      }
    }
  }

  function costOf(context: ChatContext, response: ModelResponse): number | null {
    if (prices === undefined) return context.costOf(response);
    const { model } = context;
    const { usage, modelId = model.modelId } = response;
    const query = { provider: model.provider, modelId, inputTokens: usage.inputTokens, at: clock.now() };
    return priceUsage(prices.find(query), usage);
  }

  return {
    name: "tracing",
    agent: (context, next) =>
      traced(context, next, {
        name: context.agentName,
        operation: "invoke_agent",
        attributes: context.model === null ? {} : modelNames(context.model),
        describe: () => ({ ...described(context), ...open.usedBy(context) }),
        after: (span) => {
          const { status } = context.result ?? {};
          if (status === undefined) return undefined;
          span.set({ [genAi.status]: status });
          return status === "completed" ? undefined : status;
        },
      }),
    chat: (context, next) => {
      const { model } = context;
      const named = modelNames(model);
      return traced(context, next, {
        name: model.modelId,
        operation: "chat",
        attributes: named,
        describe: () => ({ ...requested(context), ...(content && asked(context)) }),
        after: (span) => {
          const { result } = context;
          if (result === undefined) return undefined;
          const costUsd = costOf(context, result);
          open.add(context, result, costUsd);
          span.set({
            ...answered(result),
            ...(costUsd !== null && { [genAi.costUsd]: costUsd }),
            ...(content && { [genAi.outputMessages]: outputMessages(result.message, result.stopReason) }),
          });
          const { inputTokens, outputTokens } = result.usage;
          const labels = { [genAi.operation]: "chat", [genAi.agentName]: context.agentName, ...named };
          safe.measure(tokenUsage, inputTokens, { ...labels, [genAi.tokenType]: "input" });
          safe.measure(tokenUsage, outputTokens, { ...labels, [genAi.tokenType]: "output" });
          if (costUsd !== null && costUsd > 0) safe.count(cost, costUsd, labels);
          return undefined;
        },
      });
    },
    function: (context, next) =>
      traced(context, next, {
        name: context.functionName,
        operation: "execute_tool",
        attributes: { [genAi.toolName]: context.functionName },
        describe: () => ({
          [genAi.toolCallId]: context.callId,
          [genAi.toolType]: "function",
          [genAi.toolDescription]: context.tool.description,
          ...(content && { [genAi.toolArguments]: JSON.stringify(context.arguments) }),
        }),
        after: (span) => {
          const { result } = context;
          if (content) span.set({ [genAi.toolResult]: JSON.stringify(result?.output ?? null) });
          if (result?.isError !== true) return undefined;
          span.fail(new Error(`${context.functionName} returned an error`));
          return toolFailed;
        },
      }),
  };
}

/** The value of `error.type` for a tool that threw an error or returned one. */
const toolFailed = "tool_failed";

interface TracedCall {
  readonly name: string;
  readonly operation: Operation;
  /** Attributes with few distinct values, which are used for metrics as well. */
  readonly attributes: Attributes;
  /** Returns attributes that do not depend on the result. Called before and after the call, even if it throws. */
  readonly describe: () => Attributes;
  /** Called after a call that did not throw. Returns the kind of failure if the result of the call describes a failure. */
  readonly after: (span: Span) => string | undefined;
}

function whose({ agentName, agentId, runId, taskId, sessionId, tenantId }: Context): Attributes {
  return {
    [genAi.agentName]: agentName,
    [genAi.agentId]: agentId,
    [genAi.conversation]: sessionId,
    [genAi.runId]: runId,
    [genAi.taskId]: taskId,
    ...(tenantId !== null && { [genAi.tenantId]: tenantId }),
  };
}

function requested({ request, streaming }: ChatContext): Attributes {
  const { maxOutputTokens, temperature, topP, topK, seed }: ModelRequest = request;
  const { presencePenalty, frequencyPenalty, stopSequences, responseFormat }: ModelRequest = request;
  return {
    [genAi.requestStream]: streaming,
    ...(maxOutputTokens !== undefined && { [genAi.requestMaxTokens]: maxOutputTokens }),
    ...(temperature !== undefined && { [genAi.requestTemperature]: temperature }),
    ...(topP !== undefined && { [genAi.requestTopP]: topP }),
    ...(topK !== undefined && { [genAi.requestTopK]: topK }),
    ...(seed !== undefined && { [genAi.requestSeed]: seed }),
    ...(presencePenalty !== undefined && { [genAi.requestPresencePenalty]: presencePenalty }),
    ...(frequencyPenalty !== undefined && { [genAi.requestFrequencyPenalty]: frequencyPenalty }),
    ...(stopSequences !== undefined && { [genAi.requestStopSequences]: stopSequences }),
    ...(responseFormat !== undefined && { [genAi.outputType]: responseFormat.type }),
  };
}

function modelNames({ provider, modelId }: Pick<Model, "provider" | "modelId">): Attributes {
  return { [genAi.provider]: providerName(provider), [genAi.requestModel]: modelId };
}

function described({ description, version }: AgentRunContext): Attributes {
  return {
    ...(description !== "" && { [genAi.agentDescription]: description }),
    ...(version !== null && { [genAi.agentVersion]: version }),
  };
}

function answered({ usage, stopReason, modelId }: ModelResponse): Attributes {
  return {
    [genAi.finishReasons]: [finishReason(stopReason)],
    ...tokens(usage),
    ...(modelId !== undefined && { [genAi.responseModel]: modelId }),
  };
}

function tokens(usage: ReportedUsage | Usage): Attributes {
  return {
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    [genAi.cacheReadTokens]: usage.cacheReadTokens ?? 0,
    [genAi.cacheWriteTokens]: usage.cacheWriteTokens ?? 0,
    [genAi.reasoningTokens]: usage.reasoningTokens ?? 0,
  };
}

function asked({ request, systemInstructions }: ChatContext): Attributes {
  return {
    [genAi.systemInstructions]: systemParts(systemInstructions),
    [genAi.inputMessages]: inputMessages(request.messages),
  };
}

function isRun(context: Context): context is AgentRunContext {
  return "parentId" in context;
}

/** The span of a task, with the usage of the model calls below it. */
interface OpenSpan {
  readonly span: Span;
  usage: Usage;
  last: ModelResponse | undefined;
}

/**
 * The open spans of tasks in this process. They are the parents of the spans of a task's calls and children. If a
 * waiting task is dropped, its span ends; the process that resumes the task starts another span.
 */
class OpenSpans {
  readonly #byTask = new Map<string, OpenSpan>();

  above(context: Context): Span | undefined {
    const taskId = isRun(context) ? context.parentTaskId : context.taskId;
    return taskId === null ? undefined : this.#byTask.get(`${context.runId} ${taskId}`)?.span;
  }

  begin(context: AgentRunContext, span: Span, onLeave: () => void): void {
    this.#byTask.set(nameOf(context), { span, usage: noUsage, last: undefined });
    context.onLeave(() => {
      if (this.#byTask.get(nameOf(context))?.span !== span) return;
      onLeave();
      this.forget(context, span);
      span.end();
    });
  }

  /** Adds a model call to the span of its task. */
  add(context: ChatContext, response: ModelResponse, costUsd: number | null): void {
    const open = this.#byTask.get(nameOf(context));
    if (open === undefined) return;
    open.usage = addUsage(open.usage, { ...noUsage, ...response.usage, costUsd });
    open.last = response;
  }

  /**
   * Returns the usage of the model calls below the span of a task. Calls of child agents, and calls that another
   * process recorded, are below other spans.
   */
  usedBy(context: AgentRunContext): Attributes {
    const { usage, last } = this.#byTask.get(nameOf(context)) ?? {};
    if (usage === undefined || last === undefined) return {};
    const { costUsd } = usage;
    return {
      ...answered(last),
      ...tokens(usage),
      ...(costUsd !== null && { [genAi.costUsd]: costUsd }),
    };
  }

  forget(context: AgentRunContext, span: Span): void {
    const name = nameOf(context);
    if (this.#byTask.get(name)?.span === span) this.#byTask.delete(name);
  }
}

function nameOf({ runId, taskId }: Pick<Context, "runId" | "taskId">): string {
  return `${runId} ${taskId}`;
}

const openByTelemetry = new WeakMap<Telemetry, OpenSpans>();

/** Returns the open spans of a telemetry, which the middleware of all its agents shares. */
function openSpans(telemetry: Telemetry): OpenSpans {
  let open = openByTelemetry.get(telemetry);
  if (open === undefined) {
    open = new OpenSpans();
    openByTelemetry.set(telemetry, open);
  }
  return open;
}
