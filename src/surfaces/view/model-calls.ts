import type { Event, RecordedRequest, Usage } from "../../kernel/index.ts";
import { isOfProgram } from "./recorded-calls.ts";

/** A model call of a run. */
export interface ModelCallView {
  /** Seq of its `message_start` event. */
  readonly seq: number;
  readonly taskId: string;
  readonly agentId: string;
  /** Role whose model was called. */
  readonly role: string;
  /** The model as `provider/id`: the model that answered, or else the requested model. `null` if unknown. */
  readonly model: string | null;
  /** Epoch milliseconds. */
  readonly at: number;
  /** `null` if the call has no answer. */
  readonly durationMs: number | null;
  readonly usage: Usage | null;
  /** How often the request was repeated after a failure, or sent to another model. */
  readonly retries: number;
}

type OpenCall = { -readonly [Key in keyof ModelCallView]: ModelCallView[Key] };

/** The event types that `CallList` reads. */
export const callEvents = ["message_start", "message_end", "retry_start", "model_fallback"] as const;

/** The last model calls of a run, or of one task, in the order in which they started. */
export class CallList {
  readonly calls: OpenCall[] = [];
  /** Whether there are earlier calls than the first one in the list. */
  hasEarlier = false;
  readonly #most: number;
  readonly #before: number;

  /** Keeps the last `most` calls that started before the event `before`. */
  constructor(most: number, before = Infinity) {
    this.#most = most;
    this.#before = before;
  }

  add(event: Event): void {
    if (event.type === "message_end") this.#answer(event);
    if (event.type === "retry_start" || event.type === "model_fallback") this.#retry(event);
    if (event.type !== "message_start" || event.seq >= this.#before || isOfProgram(event)) return;
    const { seq, taskId, agentId, at, data } = event;
    const { modelRole: role = "main", model } = data;
    this.calls.push({ seq, taskId, agentId, role, model: nameOf(model), at, ...unanswered });
    if (this.calls.length <= this.#most) return;
    this.calls.shift();
    this.hasEarlier = true;
  }

  /**
   * Counts a retry. A retry of a tool has the same event type; in that case the newest call of the task already has
   * its answer.
   */
  #retry({ taskId }: Event): void {
    const call = this.calls.findLast((each) => each.taskId === taskId);
    if (call !== undefined && call.usage === null) call.retries++;
  }

  /** Adds an answer to the newest unanswered call with the same task and role. A lost call never gets an answer. */
  #answer({ taskId, data }: Event<"message_end">): void {
    const { modelRole = "main", usage, durationMs = null, model } = data;
    if (usage === undefined) return;
    const call = this.calls.findLast((each) => each.taskId === taskId && each.role === modelRole);
    if (call === undefined || call.usage !== null) return;
    call.usage = usage;
    call.durationMs = durationMs;
    call.model = nameOf(model) ?? call.model;
  }
}

const unanswered = { durationMs: null, usage: null, retries: 0 } as const;

function nameOf(model: Event<"message_start">["data"]["model"]): string | null {
  return model === undefined ? null : `${model.provider}/${model.modelId}`;
}

/** Describes in sentences what the record of a request cannot show. Empty if it shows everything. */
export function requestGaps(request: RecordedRequest): readonly string[] {
  const { instructions, tools, messages, ephemeralMessages, changedByMiddleware, isProven, reply } = request;
  const gaps: string[] = [];
  const parts = { instructions, tools, messages };
  const named = (state: string, reason?: string): readonly string[] =>
    Object.entries(parts).flatMap(([name, part]) =>
      part.state === state && (part.state !== "erased" || part.reason === reason) ? [name] : [],
    );
  const [byRetention, withSession] = [named("erased", "retention"), named("erased", "session")];
  const never = named("unrecorded");
  if (byRetention.length > 0) gaps.push(`Retention has erased the ${joined(byRetention)}.`);
  if (withSession.length > 0)
    gaps.push(`The ${joined(withSession)} cannot be shown, because the session that held them was deleted.`);
  if (never.length > 0)
    gaps.push(`The ${joined(never)} of this call were not recorded, because an earlier version made it.`);
  if (ephemeralMessages === null || changedByMiddleware === null)
    gaps.push(
      "It is not recorded whether the call had ephemeral messages, or whether middleware changed it.",
    );
  if (ephemeralMessages !== null && ephemeralMessages > 0)
    gaps.push(
      `${ephemeralMessages === 1 ? "One ephemeral message" : `${ephemeralMessages} ephemeral messages`} followed the messages. Their text is never stored.`,
    );
  if (changedByMiddleware !== null && changedByMiddleware.length > 0)
    gaps.push(
      `Middleware changed the ${joined(changedByMiddleware)} before the call was sent. The record has them as they were before.`,
    );
  if (messages.state === "recorded" && !isProven)
    gaps.push(
      reply === null
        ? "The call has no answer yet, so that no digest proves its messages."
        : "No digest proves these messages.",
    );
  return gaps;
}

function joined(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
