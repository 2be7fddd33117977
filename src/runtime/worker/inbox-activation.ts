import { newRun } from "../journal/new-run.ts";
import {
  canonicalJson,
  formatRunId,
  type HostedAgent,
  type Delivery,
  type Message,
  type SubmitOptions,
} from "../../kernel/index.ts";
import type { WorkerContext } from "../process/worker-context.ts";

/**
 * Starts runs for the messages that wait for an agent: each its own, or one for all where none is at it. When there may be more to start
 * without anyone's doing; `null`: never. A run's id follows from the message at its head and how often that was handed back, so that
 * whoever tries, from whatever process, starts the same run.
 */
export async function activate(owner: WorkerContext, agent: HostedAgent): Promise<number | null> {
  const { inbox: mail = "each" } = agent;
  for (;;) {
    const { deliveries, at } = await owner.store.inbox.next(agent.id, { mode: mail, now: owner.clock.now() });
    const shares = mail === "each" ? deliveries.map((each) => [each]) : [deliveries];
    let isBegun = false;
    for (const share of shares) if (await begin(owner, agent, share)) isBegun = true;
    if (!isBegun) return at;
  }
}

async function begin(
  owner: WorkerContext,
  agent: HostedAgent,
  deliveries: readonly Delivery[],
): Promise<boolean> {
  const { store, hash } = owner;
  const [head] = deliveries;
  if (head === undefined) return false;
  const { message, deliveries: tried, redelivered } = head;
  const again = redelivered === undefined ? "" : ` ${redelivered}`;
  const digest = hash(`${agent.id} ${message.id} ${tried}${again}`).replaceAll(/[^A-Za-z0-9]/g, "-");
  const runId = formatRunId(digest.slice(0, 40));
  const messages = deliveries.map((each) => each.message);
  const { record, first } = newRun(owner, agent, null, { runId, messages, ...nameOf(messages) });
  const take = { type: "take", agentId: agent.id, messageIds: messages.map(({ id }) => id) } as const;
  const { kind } = await store.journal.create(record, { ...first, inbox: [take] });
  return kind === "created";
}

/** In whose name a run for these messages is: what is the same for all of them. */
function nameOf(messages: readonly Message[]): Pick<SubmitOptions, "userId" | "tenantId" | "metadata"> {
  const [first, ...others] = messages.map(({ sender }) => sender);
  if (first === undefined) return {};
  const isShared = (key: "userId" | "tenantId" | "metadata"): boolean =>
    others.every((other) => canonicalJson(other?.[key] ?? null) === canonicalJson(first[key]));
  const { userId, tenantId, metadata } = first;
  return {
    ...(userId !== null && isShared("userId") && { userId }),
    ...(tenantId !== null && isShared("tenantId") && { tenantId }),
    ...(isShared("metadata") && { metadata }),
  };
}
