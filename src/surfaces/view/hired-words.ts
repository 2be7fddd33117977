import { visibleLine, type Event, type JsonObject } from "../../kernel/index.ts";

/**
 * Describes what happened to the session and the prompts of a hired agent, as text after its name, and where its
 * report differs from Reeve's data. `undefined` for other events.
 */
export function hiredWords(event: Event): string | undefined {
  if (event.type !== "architecture_event" || event.data.architecture !== "hired") return undefined;
  const { name, data } = event.data;
  const said = Object.hasOwn(words, name) ? words[name]?.(data ?? {}) : undefined;
  return said === undefined ? undefined : visibleLine(said);
}

const words: Readonly<Record<string, (data: JsonObject) => string>> = {
  session_opened: ({ agent, version }) => `works as ${textOf(agent)} ${textOf(version)}, in a new session`,
  session_loaded: ({ agent, version }) =>
    `works as ${textOf(agent)} ${textOf(version)}, in its earlier session`,
  prompt_continued: () => "was interrupted, and is asked to continue: its session has the prompt",
  prompt_resent: () => "gets its prompt again, because its session does not have it",
  steering_injected: () => "takes the input while it works",
  steering_queued: () => "gets the input as its next prompt",
  steering_failed: ({ reason }) => `did not take the input: ${textOf(reason)}`,
  permission_refused: ({ reason }) => `may not make a call: ${textOf(reason)}`,
  cost_differs: ({ reportedUsd, ledgerUsd }) =>
    `reports a cost of ${textOf(reportedUsd)} USD, and the ledger has ${textOf(ledgerUsd)} USD`,
  updates_skipped: () => "reports so much that the log skips the rest",
  lines_skipped: ({ count }) => `printed ${textOf(count)} lines that are no messages`,
};

function textOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "unknown";
}
