/**
 * Matches the part of an agent id that names a session. Such ids belong to agents that a process created for one
 * session. Ids of sessions begin with `ses_`.
 */
const sessionKey = /\/ses_[^/]*$/u;
/** Prefix of the ids of gateway runs. The name of the run follows it. */
const gateway = "reeve:gateway/";

/** Fields of a run, a task, an event or a question that contain the id of an agent. */
const fields = ["agentId", "rootAgentId"] as const;

/** Names of lists in an answer whose items have these fields. */
const lists = ["runs", "events", "tasks", "asked", "money", "approvals", "sessions", "questions"] as const;

/** For each type of event that names another agent, the field with this agent. */
const named: Readonly<Record<string, string>> = {
  spawn_start: "agentId",
  spawn_wait: "agentId",
  spawn_refuse: "agentId",
  handoff: "target",
};

type Fields = Record<string, unknown>;

/**
 * Replaces agent ids in an answer by the names that people know: `support/ses_run_62ed` becomes `support`, because
 * the id of a workspace's agent contains the session, and `reeve:gateway/claude` becomes `claude`. Only known
 * fields are changed, so that inputs and outputs that look similar are not affected.
 */
export function nameAgents<Value>(value: Value): Value {
  if (!isRecord(value)) return value;
  nameIn(value);
  nameIn(value["run"]);
  for (const name of lists) {
    const found = value[name];
    const items = isRecord(found) && !Array.isArray(found) ? found["items"] : found;
    if (Array.isArray(items)) for (const item of items as readonly unknown[]) nameIn(item);
  }
  return value;
}

function nameIn(record: unknown): void {
  if (!isRecord(record)) return;
  for (const field of fields) shorten(record, field);
  const { type, data } = record;
  const field = typeof type === "string" ? named[type] : undefined;
  if (field !== undefined && isRecord(data)) shorten(data, field);
}

function shorten(record: Fields, field: string): void {
  const id = record[field];
  if (typeof id !== "string") return;
  if (id.startsWith(gateway)) record[field] = id.slice(gateway.length);
  else if (id.includes("/ses_")) record[field] = id.replace(sessionKey, "");
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}
