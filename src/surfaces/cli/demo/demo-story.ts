import {
  jsonText,
  namedPaths,
  Priority,
  readProperty,
  type ApprovalRequest,
  type Event,
  type JsonValue,
  type TaskId,
} from "../../../kernel/index.ts";
import { mergeOf } from "../../view/merge-words.ts";
import { RunFold } from "../../view/run-fold.ts";

/** The meaning of a line. It decides about the colour of the line. */
export type Tone = "plain" | "quiet" | "waits" | "yields" | "lost" | "money";

/** One line of the story. */
export interface StoryLine {
  /** Time since the start of the run, in milliseconds. */
  readonly at: number;
  readonly who: string;
  readonly text: string;
  readonly tone: Tone;
}

/** The worker that was killed, and the worker that survives. */
export interface Killed {
  readonly worker: string;
  readonly pid: number;
  readonly survivor: string;
}

/** Narrates a run: a line for each event that is interesting for a person. The lines depend only on the events. */
export class DemoStory {
  readonly #fold = new RunFold();
  /** The files that tool calls name, and the commands that tool calls run, by call id. */
  readonly #paths = new Map<string, string>();
  #startedAt: number | undefined;
  #survivor = "another worker";
  #spawned: TaskId | undefined;
  #isStopped = false;
  /** Agents that a task has hired and that are not named in a line yet. */
  #hired: { readonly who: string; readonly at: number; readonly names: string[] } | undefined;

  /** Sequence number of the last added event, or -1. */
  get seq(): number {
    return this.#fold.seq;
  }

  /** Returns the lines for an event. Returns no lines for an event that was already added. */
  add(event: Event): readonly StoryLine[] {
    if (event.seq <= this.#fold.seq) return [];
    this.#startedAt ??= event.at;
    this.#fold.add(event);
    if (event.type === "spawn_start" || event.type === "spawn_wait") this.#spawned = event.data.childTaskId;
    if (event.type === "spawn_start") return this.#hire(event);
    if (event.type === "tool_execution_start") this.#paths.set(callKey(event), pathIn(event.data.input));
    const line = this.#line(event);
    const isWork = event.type === "message_start" && event.agentId !== this.#hired?.who;
    return line === undefined ? (isWork ? this.#flush() : []) : [...this.#flush(), line];
  }

  /** Returns the line about the kill of a worker. */
  kill({ worker, pid, survivor }: Killed, at: number): readonly StoryLine[] {
    this.#survivor = survivor;
    const busy = [...this.#fold.view().tasks].filter(
      ({ openCalls, lastCall }) => openCalls > 0 && lastCall?.kind === "model",
    );
    const names = busy.map(({ agentId }) => agentId).join(", ");
    const text = `${worker} is gone${names === "" ? "" : `, in the middle of a call of ${names}`}`;
    return [...this.#flush(), this.#at(at, `kill -9 ${pid}`, text, "lost")];
  }

  #hire({ agentId: who, at, data }: Event<"spawn_start">): readonly StoryLine[] {
    const before = this.#hired?.who === who ? [] : this.#flush();
    this.#hired ??= { who, at, names: [] };
    this.#hired.names.push(`${data.agentId}${rankOf(data.priority)}`);
    return before;
  }

  #flush(): readonly StoryLine[] {
    if (this.#hired === undefined) return [];
    const { who, at, names } = this.#hired;
    this.#hired = undefined;
    return [this.#at(at, who, `hires ${names.join(", ")}`, "plain")];
  }

  #line(event: Event): StoryLine | undefined {
    return this.#seatLine(event) ?? this.#moneyLine(event) ?? this.#workLine(event) ?? this.#treeLine(event);
  }

  #seatLine(event: Event): StoryLine | undefined {
    const { agentId: who, at } = event;
    switch (event.type) {
      case "spawn_wait": {
        const { agentId, priority, victim } = event.data;
        const { maxSeats } = this.#fold.view();
        const seats = maxSeats === null ? "seats" : `${maxSeats} seats`;
        const rest = victim === null ? "it waits for a seat" : `all ${seats} are taken`;
        return this.#at(at, who, `wants ${agentId}${rankOf(priority)}; ${rest}`, "yields");
      }
      case "seat_pause": {
        // A task that only waits gives its seat at once to the task that was spawned before this event.
        const to = this.#fold.view().tasks.get(event.data.taskId)?.yieldsTo ?? this.#spawned;
        const taker = to === undefined ? "another agent" : this.#nameOf(to);
        return this.#at(at, this.#nameOf(event.data.taskId), `gives its seat to ${taker}`, "yields");
      }
      case "seat_recall":
        return this.#at(
          at,
          this.#nameOf(event.data.taskId),
          "is called back and continues from its journal",
          "yields",
        );
      default:
        return undefined;
    }
  }

  #moneyLine(event: Event): StoryLine | undefined {
    const { agentId: who, at } = event;
    switch (event.type) {
      case "budget_exhausted": {
        if (this.#isStopped) return undefined;
        this.#isStopped = true;
        const { taskId, limit } = event.data;
        const spent = this.#fold.view().tasks.get(taskId)?.total.costUsd ?? 0;
        const text = `stops at its budget: $${spent.toFixed(3)} of $${limit.toFixed(2)} spent`;
        return this.#at(at, this.#nameOf(taskId), text, "waits");
      }
      case "budget_top_up": {
        this.#isStopped = false;
        const { by, add } = event.data;
        return this.#at(
          at,
          by,
          `tops up $${(add.maxCostUsd ?? 0).toFixed(2)}; the run continues where it stopped`,
          "money",
        );
      }
      case "budget_lost":
        return this.#at(
          at,
          who,
          `asks again; the call in flight is charged in full, $${(event.data.costUsd ?? 0).toFixed(3)}`,
          "lost",
        );
      case "run_recover": {
        const { recoveries } = this.#fold.view();
        const last = recoveries.at(-1);
        if (last?.isCrash !== true) return undefined;
        const text = `resumes: ${last.replayed} steps replayed free, $${last.savedUsd.toFixed(3)} not paid again`;
        return this.#at(at, this.#survivor, text, "money");
      }
      default:
        return undefined;
    }
  }

  #workLine(event: Event): StoryLine | undefined {
    const { agentId: who, at } = event;
    switch (event.type) {
      case "approval_request":
        return this.#at(at, who, `waits for you: ${this.#askedIn(event.data)}`, "waits");
      case "approval_decision": {
        const { decision, approvalId } = event.data;
        const request = this.#fold.view().asked.get(approvalId)?.request;
        const call = request === undefined ? "the call" : this.#askedIn(request);
        return this.#at(at, decision.by ?? "a person", `${decisions[decision.decision]} ${call}`, "money");
      }
      case "tool_execution_end": {
        const text = workOf(event.data, this.#paths.get(callKey(event)) ?? "");
        return text === undefined ? undefined : this.#at(at, who, text, "quiet");
      }
      case "task_end": {
        const { output, status } = event.data;
        const depth = this.#fold.view().tasks.get(event.taskId)?.depth ?? 0;
        if (depth !== 1 || status !== "completed") return undefined;
        return this.#at(at, who, `reports: ${jsonText(output ?? null)}`, "quiet");
      }
      case "run_end":
        return event.data.status === "completed" ? this.#at(at, who, "is done", "money") : undefined;
      default:
        return undefined;
    }
  }

  /** Returns the line for an event about employees that work in worktrees. */
  #treeLine(event: Event): StoryLine | undefined {
    const { agentId: who, at } = event;
    switch (event.type) {
      case "worktree_open": {
        const { base, from } = event.data;
        const text = `works in a worktree of its own, from ${base.slice(0, 7)}${from === null ? "" : ` of ${from}`}`;
        return this.#at(at, who, text, "plain");
      }
      case "worktree_finish": {
        const { commit, changed, overlaps } = event.data;
        const others = overlaps.map(
          ({ path, taskId }) => `${this.#nameOf(taskId)} has changed ${path} as well`,
        );
        const work = `leaves commit ${commit.slice(0, 7)} with ${namedPaths(changed)}`;
        return this.#at(at, who, [work, ...others].join("; "), others.length === 0 ? "plain" : "yields");
      }
      case "worktree_merge": {
        const { status, branch, path, changed } = event.data;
        const isMerged = status === "merged";
        const text = isMerged ? `merges ${namedPaths(changed)} into ${branch ?? path}` : "merges nothing";
        return this.#at(at, who, text, isMerged ? "money" : "lost");
      }
      default:
        return undefined;
    }
  }

  #at(at: number, who: string, text: string, tone: Tone): StoryLine {
    return { at: at - (this.#startedAt ?? at), who, text, tone };
  }

  /** Returns what a person is asked about: a call, or the employee whose work is merged. */
  #askedIn({ kind, toolName, input }: Pick<ApprovalRequest, "kind" | "toolName" | "input">): string {
    const merge = kind === "merge" ? mergeOf(input) : null;
    const names = merge?.merge.sources.map(({ taskId }) => this.#nameOf(taskId));
    return `${toolName} ${names?.join(", ") ?? pathIn(input)}`.trimEnd();
  }

  #nameOf(taskId: TaskId): string {
    return this.#fold.view().tasks.get(taskId)?.agentId ?? taskId;
  }
}

function callKey({ taskId, data }: Event<"tool_execution_start"> | Event<"tool_execution_end">): string {
  return `${taskId} ${data.callId}`;
}

/** Describes the work of a tool call. `undefined` if the story omits the call. */
function workOf(
  { toolName, status = "ok", result }: Event<"tool_execution_end">["data"],
  path: string,
): string | undefined {
  if (toolName === "shell" && (status === "ok" || status === "error"))
    return `runs ${path}${testsIn(result)}`;
  if (status !== "ok") return undefined;
  if (toolName === "edit") return `edits ${path}`;
  if (toolName === "write") return `writes ${path}`;
  return toolName === "test" ? `runs the tests${testsIn(result)}` : undefined;
}

/** Returns the test summary of Node in a result, or an empty text. */
function testsIn({ output }: Event<"tool_execution_end">["data"]["result"]): string {
  const text = output.type === "text" ? output.text : "";
  const [, all, failed] = /^(?:#|ℹ) tests (\d+)[^]*^(?:#|ℹ) fail (\d+)/mu.exec(text) ?? [];
  if (all === undefined) return "";
  return `: ${failed === "0" ? `all ${all} pass` : `${failed} of ${all} fails`}`;
}

const decisions = { approved: "approves", denied: "denies", skipped: "skips" } as const;

/** Returns the path in the arguments of a call, or the first line of its command. */
function pathIn(input: JsonValue): string {
  const subject = readProperty(input, "path") ?? readProperty(input, "command");
  const [line = "", ...more] = typeof subject === "string" ? subject.split("\n") : [];
  return more.length === 0 ? line : `${line} …`;
}

function rankOf(priority: Priority): string {
  if (priority === Priority.NORMAL) return "";
  const name = Object.entries(Priority).find(([, value]) => value === priority)?.[0] ?? String(priority);
  return ` (${name})`;
}
