import { rootTaskId, type Event, type TaskId } from "../../../src/kernel/index.ts";
import type { Run } from "../../api/types.ts";
import { isMessage, messageTypes } from "../../../src/surfaces/view/message-events.ts";
import { messageWords } from "../../model/words/message-words.ts";

/** Types of the events of a run that are searched: they name its agents and hold what agents sent to each other. */
export const searchedTypes = ["task_start", ...messageTypes] as const;

/** An agent that works or worked in a run. */
interface FoundAgent {
  readonly run: Run;
  readonly taskId: TaskId;
  readonly agentId: string;
}

/** A message of a run. */
interface FoundMessage {
  readonly run: Run;
  readonly seq: number;
  readonly at: number;
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

interface FoundInRun {
  readonly agents: readonly FoundAgent[];
  readonly messages: readonly FoundMessage[];
}

/** The agents and messages of a run that contain a text. The root is left out: the run itself is found by it. */
export function findInRun(run: Run, events: readonly Event[], text: string): FoundInRun {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return { agents: [], messages: [] };
  const has = (field: string): boolean => field.toLowerCase().includes(wanted);
  const names = new Map<TaskId | null, string>();
  for (const { taskId, agentId } of events) names.set(taskId, agentId);
  const agents = [...names].flatMap(([taskId, agentId]) =>
    taskId !== null && taskId !== rootTaskId && has(agentId) ? [{ run, taskId, agentId }] : [],
  );
  const agentOf = (taskId: TaskId | null): string => names.get(taskId) ?? run.agentId;
  const messages = events.filter(isMessage).flatMap((event) => {
    const words = messageWords(event, agentOf);
    return has(words.text) ? [{ run, seq: event.seq, at: event.at, ...words }] : [];
  });
  return { agents, messages };
}

/** Number of letters before a hit that are shown. The server cuts messages of conversations so far around a hit. */
const lettersBefore = 40;

/** A long text from a little before the words that were searched. A cut beginning has an ellipsis. */
export function around(text: string, wanted: string): string {
  const at = text.toLowerCase().indexOf(wanted.trim().toLowerCase());
  if (at <= lettersBefore) return text;
  const space = text.indexOf(" ", at - lettersBefore);
  return `…${text.slice(space < 0 || space >= at ? at : space + 1)}`;
}

/** A part of a message that the server cut around what was searched, cut at words, with an ellipsis where text is left out. */
export function excerptWords(excerpt: string, wanted: string): string {
  const at = excerpt.toLowerCase().indexOf(wanted.toLowerCase());
  const rest = excerpt.length - at - wanted.length;
  const head = at < lettersBefore ? excerpt : excerpt.replace(/^\S*\s+/u, "…");
  return rest < lettersBefore ? head : head.replace(/\s+\S*$/u, "…");
}
