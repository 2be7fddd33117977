/** The key of an agent that a process made for one session. Ids of sessions begin with `ses_`. */
const sessionKey = /\/ses_[^/]*$/u;
/** What the ids of gateway runs begin with. The name of the run follows. */
const gateway = "reeve:gateway/";

/** Fields of a run, a task, an event or a question that have the id of an agent. */
const fields = ["agentId", "rootAgentId"] as const;

/** Lists of an answer whose items have such fields. */
const lists = ["runs", "events", "tasks", "asked", "money", "approvals", "sessions", "questions"] as const;

/** Fields of events that name another agent, by the type of the event. */
const named: Readonly<Record<string, string>> = {
  spawn_start: "agentId",
  spawn_wait: "agentId",
  spawn_refuse: "agentId",
  handoff: "target",
};

type Fields = Record<string, unknown>;

/**
 * Names the agents of an answer as people know them: `support/ses_run_62ed` is `support`, because the session is part of the
 * id of a workspace's agent, and `reeve:gateway/claude` is `claude`. Only known fields change, so that inputs and outputs that look alike stay as they are.
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
