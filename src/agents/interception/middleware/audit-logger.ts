import {
  eventDraft,
  Fault,
  messageText,
  MiddlewareTermination,
  withoutSecrets,
  type AgentId,
  type AgentRunContext,
  type ChatContext,
  type FunctionContext,
  type JsonObject,
  type RunId,
  checkMethods,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import type { Layer } from "./layer.ts";
import { headOf } from "../../base/text-cut.ts";

type Context = AgentRunContext | ChatContext | FunctionContext;

/** One audit entry about a call. */
export interface AuditLine {
  readonly runId: RunId;
  readonly actor: AgentId;
  readonly action: "agent_run" | "model_call" | "tool_call";
  readonly details: JsonObject;
}

/** An external audit log. The run's own event log remains the one in which changes are detected. */
export interface AuditBook {
  record(line: AuditLine): void | Promise<void>;
}

/** Options of `auditLogger`. */
export interface AuditLoggerOptions {
  readonly log: AuditBook;
  /** Maximum number of characters kept of prompts, arguments and answers. `null` keeps everything. Default: 500. */
  readonly maxChars?: number | null;
  /**
   * Whether the run stops at once, as `guardrail_tripped`, if an entry cannot be written. Default: `false`; the
   * failure is then written to the run's log.
   */
  readonly required?: boolean;
}

const knownOptions = optionTable({
  log: {
    isRequired: true,
    check: (value: unknown, option: string, owner: string) =>
      checkMethods(`${option} of ${owner}`, value ?? {}, ["record"], "pass an object with record(line)"),
  },
  maxChars: is.number({ or: [null, "no limit"], default: 500 }),
  required: is.boolean({ default: false }),
} satisfies OptionKinds<AuditLoggerOptions>);

/**
 * Writes an entry for every run, model call and tool call, with its user and outcome. A replay writes none for recorded
 * calls. A crash between a call and its record writes the entry twice (J6).
 */
export function auditLogger(options: AuditLoggerOptions): Layer {
  const { log, maxChars, required } = knownOptions.read("auditLogger()", options);
  const short = (text: string): string =>
    maxChars === null || text.length <= maxChars ? text : `${headOf(text, maxChars)}[...]`;

  async function around(
    context: Context,
    next: () => Promise<void>,
    action: AuditLine["action"],
    describe: () => JsonObject,
  ): Promise<void> {
    try {
      await next();
    } catch (error) {
      const { code, message } = Fault.from(error);
      await write(context, action, {
        ...describe(),
        failure: { code, message: short(withoutSecrets(message)) },
      });
      throw error;
    }
    await write(context, action, describe());
  }

  async function write(context: Context, action: AuditLine["action"], details: JsonObject): Promise<void> {
    const { runId, agentId, taskId, tenantId, facts } = context;
    const whose = { taskId, tenantId, userId: facts.userId };
    try {
      await log.record({ runId, actor: agentId, action, details: { ...whose, ...details } });
    } catch (error) {
      // Not the error itself: the task would be started again after a delay, as after a crash of its code.
      if (required) throw unwritten(error);
      const failure = Fault.from(error).toJSON();
      context.emitEvent(eventDraft("hook_error", { hook: "audit-logger", failure }));
    }
  }

  return {
    name: "audit-logger",
    agent: (context, next) =>
      around(context, next, "agent_run", () => ({
        input: short(JSON.stringify(context.input)),
        ...(context.result && {
          status: context.result.status,
          output: short(JSON.stringify(context.result.output)),
        }),
      })),
    chat: (context, next) => around(context, next, "model_call", () => describeChat(context, short)),
    function: (context, next) =>
      around(context, next, "tool_call", () => ({
        tool: context.functionName,
        callId: context.callId,
        arguments: short(JSON.stringify(context.arguments)),
        ...(context.result && {
          isError: context.result.isError,
          output: short(JSON.stringify(context.result.output)),
        }),
      })),
  };
}

/** Creates the error that stops the run, because further actions would not be in the audit log either. */
function unwritten(error: unknown): MiddlewareTermination {
  const { message } = Fault.from(error);
  return new MiddlewareTermination(`the audit log cannot be written: ${message}`, {
    by: "audit-logger",
    cause: error,
  });
}

function describeChat(context: ChatContext, short: (text: string) => string): JsonObject {
  const { model, request, role, result } = context;
  const last = request.messages.at(-1);
  return {
    model: `${model.provider}/${model.modelId}`,
    role,
    messages: request.messages.length,
    last: last === undefined ? "" : short(messageText(last)),
    ...(result && {
      stopReason: result.stopReason,
      inputTokens: result.usage.inputTokens,
      outputTokens: result.usage.outputTokens,
      answer: short(messageText(result.message)),
    }),
  };
}
