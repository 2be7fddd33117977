import {
  Fault,
  HistoryRetention,
  requireNamed,
  spawnKinds,
  type HostedAgent,
  is,
  optionTable,
  type OptionKinds,
  type OptionTable,
  type SpawnOptions,
  type WorkerBrief,
} from "../../kernel/index.ts";
import { promptParts } from "../base/agent-input.ts";
import { checkSubAgent } from "../base/part-check.ts";
import { refuseDuplicateNames } from "./duplicate-names.ts";
import type { PromptContext } from "../context/prompt-context.ts";

/** An agent in a team, with the options to spawn it. */
export interface Member extends Omit<SpawnOptions, "role" | "handsOver"> {
  /** The agent to spawn. */
  readonly agent: HostedAgent;
  /** What the agent is good at; models choose a member by its description. Default: the agent's own description. */
  readonly description?: string;
}

/** The members of a team, by their names in the team. */
export type Members = Readonly<Record<string, HostedAgent | Member>>;

/** Describes in words which names of members are valid. Such a name can be part of a tool name and of a session id. */
export const memberNameRule = "1 to 48 letters, digits, _ and -";

/** Whether a name follows `memberNameRule`. */
export function isMemberName(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,48}$/u.test(name);
}

/** The checked members of a team. `table` has the settings of a member. */
export class TeamMembers {
  /** Names of the members, in the order of the options. */
  readonly names: readonly string[];
  /** Agents of the members by name, for `Architecture.declaredWorkers`. */
  readonly agents: Readonly<Record<string, HostedAgent>>;
  readonly #members: ReadonlyMap<string, Member>;

  constructor(
    where: string,
    option: string,
    members: Members,
    minimum = 1,
    table: OptionTable = memberTable,
  ) {
    requireNamed(`${option} of ${where}`, members, "agents", `{ ${option}: { writer: agent } }`);
    this.names = Object.keys(members);
    if (this.names.length < minimum)
      throw new Fault(
        "invalid_argument",
        `${where} needs ${minimum === 1 ? "at least one agent" : `at least ${minimum} agents`}: ${option} has ${this.names.length}`,
      );
    for (const name of this.names) {
      if (!isMemberName(name))
        throw new Fault(
          "invalid_argument",
          `${JSON.stringify(name)} in ${option} of ${where} is not a valid name for a member of a team: use ${memberNameRule}`,
        );
    }
    const list = Object.entries(members).map(([name, each]): [string, Member] => [
      name,
      toMember(`member ${name} of ${where}`, each, table),
    ]);
    refuseDuplicateNames(
      where,
      list.map(([, { agent }]) => agent),
    );
    this.#members = new Map(list);
    this.agents = Object.fromEntries(list.map(([name, { agent }]) => [name, agent]));
  }

  /** Returns the member with a name that a model chose; `undefined` if there is none. */
  find(name: string): Member | undefined {
    return this.#members.get(name);
  }

  /** Returns the member with this name. Throws `not_found` if there is none. */
  get(name: string): Member {
    const member = this.#members.get(name);
    if (member !== undefined) return member;
    throw new Fault("not_found", `there is no member ${name}; members: ${this.names.join(", ")}`);
  }

  /** Returns the description of a member: the one in the team, else the agent's own, else the agent's id. */
  describe(name: string): string {
    const { agent, description } = this.get(name);
    const own: unknown = Reflect.get(agent, "description");
    return description ?? (typeof own === "string" && own !== "" ? own : agent.id);
  }

  /** Lists all members with their descriptions, for a prompt. */
  describeAll(): string {
    return this.names.map((name) => `- ${name}: ${this.describe(name)}`).join("\n");
  }
}

const { role: _role, handsOver: _handsOver, ...kindsOfMember } = spawnKinds;

/** The kinds of the settings of a member. */
export const memberKinds = {
  ...kindsOfMember,
  agent: is.any,
  description: is.text(),
} satisfies OptionKinds<Member>;

const memberTable = optionTable(memberKinds);

function toMember(place: string, member: HostedAgent | Member, table: OptionTable): Member {
  checkSubAgent(place, member);
  if (!("agent" in member)) return { agent: member };
  return table.read(place, member);
}

/**
 * Returns the options to spawn a member. With `rememberedRole`, the member continues the conversation that it has
 * had in this role, in the session of the run.
 */
export function spawnOptionsOf(
  { agent: _agent, description: _description, ...options }: Member,
  rememberedRole?: string,
): SpawnOptions {
  return rememberedRole === undefined
    ? options
    : { ...options, retention: HistoryRetention.PERMANENT, role: rememberedRole };
}

/**
 * Creates the brief of a worker from the prompt of an invocation. It contains the prompt with its attachments, the
 * conversation, a description of the worker's task (`roleInstructions`) and the instructions of the agent for which
 * it works.
 */
export function workerBrief(
  { prompt, attachments, history, instructionsWithoutFormat }: PromptContext,
  roleInstructions = "",
): WorkerBrief {
  const context =
    instructionsWithoutFormat === ""
      ? ""
      : `Instructions of the agent you work for:\n${instructionsWithoutFormat}`;
  const instructions = [roleInstructions, context].filter((part) => part !== "").join("\n\n");
  return {
    prompt: attachments.length === 0 ? prompt : promptParts(prompt, attachments),
    ...(instructions !== "" && { instructions }),
    ...(history.length > 0 && { history: history.slice() }),
  };
}

/**
 * Creates a brief like `workerBrief`, for a worker whose answer may be the answer of the invocation: it adds the
 * requested output schema.
 */
export function answerBrief(promptContext: PromptContext): WorkerBrief {
  return { ...workerBrief(promptContext), ...requestedOutput(promptContext) };
}

/** Returns the requested output schema as part of a brief; empty if the caller requested no schema. */
export function requestedOutput({ format }: PromptContext): Pick<WorkerBrief, "output"> {
  return format?.type === "json" && format.schema !== undefined ? { output: format.schema } : {};
}
