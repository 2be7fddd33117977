import { kindTable } from "../agents/index.ts";
import { RemoteArchitecture } from "../capabilities/hire/remote-architecture.ts";
import { describeValue, invalidOption, is, type OptionKinds } from "../kernel/index.ts";
import { systemClock } from "../runtime/index.ts";
import { Agent, type AgentOptions } from "./agent.ts";
import { notOfHired } from "./hired-agent.ts";

/** The options of an agent that calls tools itself, or works in a folder of this machine. */
const notOfRemote = [...notOfHired, "isolation", "permissions"] as const;

/** Options of `remoteAgent()`. */
export interface RemoteAgentOptions extends Omit<AgentOptions, (typeof notOfRemote)[number]> {
  /** Address of the agent card, such as `https://partner.example/.well-known/agent-card.json`. */
  readonly card: string;
  /**
   * Headers of each request, such as `authorization`. They are sent only to the origin of the card. Default: none.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * How long the task waits for an agent that cannot be reached, before it fails with `agent_crashed`, in milliseconds.
   * Default: 600_000.
   */
  readonly unreachableMs?: number;
  /**
   * How long the run stays in memory while it only waits for the answer to a question, in milliseconds. Default:
   * 3_600_000.
   */
  readonly idleMs?: number;
  /** How long the agent may take to answer what needs no work, in milliseconds. Default: 60_000. */
  readonly startTimeoutMs?: number;
}

type FilledOptions = Required<Pick<RemoteAgentOptions, "idleMs" | "unreachableMs" | "startTimeoutMs">>;
type OwnOptions = Omit<RemoteAgentOptions, keyof AgentOptions>;

const ownKinds = {
  card: is.checkedBy((card: unknown, option, owner) => {
    if (typeof card !== "string" || !/^https?:$/u.test(URL.canParse(card) ? new URL(card).protocol : ""))
      throw invalidOption(
        owner,
        option,
        card,
        "the address of an agent card",
        'use card: "https://partner.example/.well-known/agent-card.json"',
      );
  }),
  headers: is.checkedBy((headers: unknown, option, owner) => {
    const isObject = typeof headers === "object" && headers !== null && !Array.isArray(headers);
    if (!isObject || Object.values(headers).some((value) => typeof value !== "string"))
      throw invalidOption(
        owner,
        option,
        headers,
        "an object with texts",
        'use headers: { authorization: "Bearer TOKEN" }',
      );
  }),
  unreachableMs: is.integer({ from: 0, default: 600_000 }),
  idleMs: is.integer({ from: 0, default: 3_600_000 }),
  startTimeoutMs: is.integer({ from: 1, default: 60_000 }),
} satisfies OptionKinds<OwnOptions>;

const remoteTable = kindTable(notOfRemote, ownKinds);

/**
 * An agent of another server, which speaks A2A 1.0. Each task is one task there. It has a seat, a deadline and a budget of
 * turns here; what the other side spends is unknown, so that a budget in dollars refuses it unless `unknownPrice` ignores it.
 *
 * @example
 * ```ts
 * import { remoteAgent } from "reeve/hire";
 *
 * const lawyer = remoteAgent({
 *   name: "lawyer",
 *   description: "Checks contracts",
 *   card: "https://partner.example/a2a/lawyer/.well-known/agent-card.json",
 *   headers: { authorization: `Bearer ${process.env["PARTNER_TOKEN"]}` },
 *   budget: { maxTurns: 5, deadlineMs: 600_000 },
 * });
 * ```
 */
export function remoteAgent(options: RemoteAgentOptions): Agent {
  return new RemoteAgent(options);
}

class RemoteAgent extends Agent {
  constructor(options: RemoteAgentOptions) {
    const owner = `remote agent ${describeValue(options.name)}`;
    const read = remoteTable.read(owner, options) as RemoteAgentOptions & FilledOptions;
    const { card, headers = {}, unreachableMs, idleMs, startTimeoutMs, ...rest } = read;
    if (card === undefined)
      throw invalidOption(
        owner,
        "card",
        card,
        "the address of an agent card",
        'use card: "https://partner.example/.well-known/agent-card.json"',
      );
    super({
      ...rest,
      architecture: new RemoteArchitecture({
        name: options.name,
        card,
        headers,
        unreachableMs,
        idleMs,
        startTimeoutMs,
        clock: systemClock,
      }),
    });
  }
}
