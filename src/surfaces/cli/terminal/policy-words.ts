import type { Event } from "../../../kernel/index.ts";
import { printable } from "./terminal.ts";

/**
 * Describes what a guardrail, hook or extension, which may watch, change or refuse calls, did: a refusal, an error
 * or a notice. `undefined` for other events.
 */
export function policyWords(event: Event): string | undefined {
  switch (event.type) {
    case "permission_deny": {
      const { toolName, by, reason } = event.data;
      return `${printable(toolName)} is denied by ${printable(by)}: ${printable(reason)}`;
    }
    case "guardrail_decision": {
      const { guardrail, stage, decision, reason } = event.data;
      return `guardrail ${printable(guardrail)} decides ${decision} at ${stage}: ${printable(reason)}`;
    }
    case "guardrail_error": {
      const { guardrail, stage, failure } = event.data;
      return `guardrail ${printable(guardrail)} failed at ${stage}: ${printable(failure.message)}`;
    }
    case "hook_error":
      return `hook ${printable(event.data.hook)} failed: ${printable(event.data.failure.message)}`;
    default:
      return extensionWords(event);
  }
}

/** Describes an error or a notice of an extension. `undefined` for other events. */
export function extensionWords(event: Event): string | undefined {
  switch (event.type) {
    case "extension_error":
      return extensionErrorWords(event.data);
    case "extension_notice":
      return extensionNoticeWords(event.data);
    default:
      return undefined;
  }
}

/** Describes an error of an extension, including errors outside of runs. */
export function extensionErrorWords({ extension, event, failure }: Event<"extension_error">["data"]): string {
  return `extension ${printable(extension)} failed in ${printable(event)}: ${printable(failure.message)}`;
}

/** Describes a notice of an extension, including notices outside of runs. */
export function extensionNoticeWords({
  extension,
  message,
  level,
}: Event<"extension_notice">["data"]): string {
  const urgency = level === "info" ? "" : `${level}: `;
  return `extension ${printable(extension)}: ${urgency}${printable(message)}`;
}
