import {
  Fault,
  HistoryRetention,
  type HostedAgent,
  type SpawnOptions,
  type WorkerBrief,
} from "../../kernel/index.ts";
import { refuseNamesakes } from "../namesakes.ts";
import type { PromptContext } from "./prompt-context.ts";

/** An agent in a team, and how it is hired. */
export interface Member extends Omit<SpawnOptions, "role"> {
  readonly agent: HostedAgent;
  /** What it is good at: it is chosen by this. The agent's own unless told. */
  readonly description?: string;
}

export type Members = Readonly<Record<string, HostedAgent | Member>>;

/** Fit for a part of a tool's name, and of a session's. */
export const memberNameRule = "1 to 48 letters, digits, _ and -";

export function isMemberName(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,48}$/u.test(name);
}

/** Those a team is made of, by the names they have in it. */
export class TeamMembers {
  readonly names: readonly string[];
  /** As `Architecture.declaredWorkers` gives them. */
  readonly agents: Readonly<Record<string, HostedAgent>>;
  readonly #members: ReadonlyMap<string, Member>;

  constructor(where: string, what: string, members: Members, least = 1) {
    this.names = Object.keys(members);
    if (this.names.length < least)
      throw new Fault(
        "invalid_argument",
        `${where} needs ${least === 1 ? "at least one agent" : `at least ${least} agents`}: ${what} has ${this.names.length}`,
      );
    for (const name of this.names) {
      if (!isMemberName(name))
        throw new Fault(
          "invalid_argument",
          `${JSON.stringify(name)} in ${what} of ${where} is no name for an agent in a team: use ${memberNameRule}`,
        );
    }
    const list = Object.entries(members).map(([name, each]): [string, Member] => [name, toMember(each)]);
    refuseNamesakes(
      where,
      list.map(([, { agent }]) => agent),
    );
    this.#members = new Map(list);
    this.agents = Object.fromEntries(list.map(([name, { agent }]) => [name, agent]));
  }

  /** For those that models name. */
  find(name: string): Member | undefined {
    return this.#members.get(name);
  }

  get(name: string): Member {
    const member = this.#members.get(name);
    if (member !== undefined) return member;
    throw new Fault("not_found", `there is no ${name}; there are: ${this.names.join(", ")}`);
  }

  describe(name: string): string {
    const { agent, description } = this.get(name);
    const own: unknown = Reflect.get(agent, "description");
    return description ?? (typeof own === "string" && own !== "" ? own : agent.id);
  }

  /** As a model is shown them. */
  describeAll(): string {
    return this.names.map((name) => `- ${name}: ${this.describe(name)}`).join("\n");
  }
}

function toMember(member: HostedAgent | Member): Member {
  return "agent" in member ? member : { agent: member };
}

/** How a member is hired. `remembers`: it goes on with what it did in this role for this user, in the run's session. */
export function spawnOptionsOf(
  { agent: _agent, description: _said, ...options }: Member,
  remembers?: string,
): SpawnOptions {
  return remembers === undefined
    ? options
    : { ...options, retention: HistoryRetention.PERMANENT, role: remembers };
}

/**
 * A question as it was put to the agent, for a worker that is to work on it: with its files, what was said before, and what the agent is
 * told, beside what the worker is there for.
 */
export function workerBrief(
  { prompt, attachments, history, instructionsWithoutFormat }: PromptContext,
  duty = "",
): WorkerBrief {
  const context =
    instructionsWithoutFormat === "" ? "" : `The agent you work for is told:\n${instructionsWithoutFormat}`;
  const instructions = [duty, context].filter((part) => part !== "").join("\n\n");
  return {
    prompt: attachments.length === 0 ? prompt : [{ type: "text", text: prompt }, ...attachments],
    ...(instructions !== "" && { instructions }),
    ...(history.length > 0 && { history: history.slice() }),
  };
}

/** The same for a worker whose answer may be the answer: in the form that is wanted. */
export function answerBrief(promptContext: PromptContext): WorkerBrief {
  return { ...workerBrief(promptContext), ...requestedOutput(promptContext) };
}

export function requestedOutput({ format }: PromptContext): Pick<WorkerBrief, "output"> {
  return format?.type === "json" && format.schema !== undefined ? { output: format.schema } : {};
}
