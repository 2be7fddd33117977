import {
  Fault,
  is,
  optionTable,
  parseAgentId,
  type JsonObject,
  type OpenApproval,
  type OptionKinds,
  type RunSummary,
  visibleLine,
} from "../../../kernel/index.ts";

/** What a rule notifies about: a run that asks a person, or a run that has ended. */
const notificationCauses = ["waiting", "ended"] as const;
/** A cause of a notification: a run asks a person, or a run has ended. */
export type NotificationCause = (typeof notificationCauses)[number];

/** Where notifications go: a conversation of a channel, or an address, to which they are sent signed like a webhook. */
export type NotificationTarget =
  | { readonly channel: string; readonly conversation: string }
  | {
      readonly url: string;
      /** Secret that signs, at least 32 characters. */
      readonly secret: string;
      /** Private hosts that `url` may lead to. Default: none. */
      readonly allowPrivate?: boolean | readonly string[];
    };

/** Sends notifications about the runs of a store that match all its filters. */
export interface NotificationRule {
  /** Unique name of the rule: 1 to 24 lower-case letters, digits and `-`, starting with a letter. */
  readonly name: string;
  readonly to: NotificationTarget;
  /** Default: both. */
  readonly on?: readonly NotificationCause[];
  /** Names of the root agents. Default: all agents. */
  readonly agents?: readonly string[];
  /** Ids of the users of the runs. Default: all users, and runs without a user. */
  readonly users?: readonly string[];
  /** Ids of the tenants of the runs. Default: all tenants, and runs without a tenant. */
  readonly tenants?: readonly string[];
}

/**
 * Option table of a rule. Unknown options throw, because a misspelt filter would notify about the runs of all
 * tenants.
 */
export const ruleTable = optionTable({
  name: is.text({ required: true }),
  to: is.named("target", '{ channel: "telegram", conversation: "4711" } or { url, secret }', {
    required: true,
  }),
  on: is.list(),
  agents: is.list({ of: is.text() }),
  users: is.list({ of: is.text() }),
  tenants: is.list({ of: is.text() }),
} satisfies OptionKinds<NotificationRule>);

/** The agent, user and tenant of a run. */
type RunOwner = Pick<RunSummary, "agentId" | "userId" | "tenantId">;

/** Whether a rule applies to the runs of an owner. */
export function matches(
  { agents, users, tenants }: NotificationRule,
  { agentId, userId, tenantId }: RunOwner,
): boolean {
  return isOneOf(agents, parseAgentId(agentId).name) && isOneOf(users, userId) && isOneOf(tenants, tenantId);
}

function isOneOf(list: readonly string[] | undefined, value: string | null): boolean {
  return list === undefined || (value !== null && list.includes(value));
}

export function notifiesAbout(
  { on = notificationCauses }: NotificationRule,
  cause: NotificationCause,
): boolean {
  return on.includes(cause);
}

/** Throws `invalid_argument` for a rule that cannot work. */
export function checkRule({ name, on = [] }: NotificationRule): void {
  if (!/^[a-z][a-z0-9-]{0,23}$/u.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid name ${JSON.stringify(name)} of a notification: expected 1 to 24 lower-case letters, digits and -, starting with a letter`,
    );
  const unknown = on.find((cause) => !notificationCauses.includes(cause));
  if (unknown !== undefined)
    throw new Fault(
      "invalid_argument",
      `invalid cause ${JSON.stringify(unknown)} of notification ${name}: expected ${notificationCauses.join(" or ")}`,
    );
}

/** The text and the facts of a notification. They contain nothing that a model or a person has written in the run. */
export interface Notice {
  readonly text: string;
  readonly data: JsonObject;
}

/** The facts about a question to a person that a notification contains. */
export type AskedPerson = Pick<
  OpenApproval,
  "runId" | "rootAgentId" | "userId" | "tenantId" | "approvalId" | "kind" | "toolName" | "requestedAt"
> &
  Pick<RunSummary, "sessionId">;

export function waitingNotice(asked: AskedPerson): Notice {
  const { runId, rootAgentId, sessionId, userId, tenantId, approvalId, kind, toolName, requestedAt } = asked;
  const agent = parseAgentId(rootAgentId).name;
  const session = sessionId !== undefined && { sessionId };
  const data = { cause: "waiting", runId, agent, ...session, userId, tenantId, approvalId, kind, toolName };
  return {
    text: `${agent} waits for a person (${visibleLine(toolName)}): ${runId}`,
    data: { ...data, at: requestedAt },
  };
}

export function endedNotice({
  runId,
  agentId,
  sessionId,
  userId,
  tenantId,
  status,
  endedAt,
  costUsd,
}: RunSummary): Notice {
  const agent = parseAgentId(agentId).name;
  const session = sessionId !== undefined && { sessionId };
  const data = { cause: "ended", runId, agent, ...session, userId, tenantId, status, costUsd, at: endedAt };
  return { text: `${agent} has ended with the status ${status}: ${runId}`, data };
}
