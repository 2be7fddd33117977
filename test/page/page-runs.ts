import {
  formatAgentId,
  formatRunId,
  formatSessionId,
  noUsage,
  Priority,
  rootTaskId,
  type JsonObject,
  type RunStatus,
} from "../../src/kernel/index.ts";
import { releaseTask } from "./company.ts";
import type { PageServer } from "./page-server.ts";

/** Starts a run as a program would. Returns its id. */
export async function submitRun(server: PageServer, agent: string, input: string): Promise<string> {
  const response = await fetch(`${server.url}/api/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ agent, input }),
  });
  const { run } = (await response.json()) as { readonly run: { readonly runId: string } };
  return run.runId;
}

/** Waits for the end of a run. */
export async function ended(server: PageServer, runId: string): Promise<void> {
  await (await server.runtime.find(runId))?.result();
}

export async function waitsForPerson(server: PageServer, runId: string): Promise<void> {
  const run = await server.runtime.find(runId);
  for await (const event of run?.events() ?? []) if (event.type === "approval_request") return;
}

export async function decisions(server: PageServer, runId: string): Promise<readonly unknown[]> {
  const run = await server.runtime.find(runId);
  const found: unknown[] = [];
  for await (const event of run?.events({ follow: false, types: ["approval_decision"] }) ?? [])
    if (event.type === "approval_decision") found.push(event.data.decision);
  return found;
}

/** Makes a message that could not be delivered. */
export async function deadLetter(server: PageServer, to: string): Promise<void> {
  const { inbox } = server.store;
  const id = "letter-1";
  const sender = { runId: "run_sender" as never, userId: null, tenantId: null, metadata: {} };
  await inbox.deliver({ id, from: null, to: to as never, body: "Read this.", sentAt: Date.now(), sender });
  for (let time = 0; time < inbox.settings.maxDeliveries; time++) await inbox.nack(to as never, [id]);
}

/** The company's run, which waits for a person. Starts it if there is none. */
export async function releaseRun(server: PageServer): Promise<string> {
  const { runs } = await server.runtime.list({ agentId: "lead", limit: 500, status: ["running", "waiting"] });
  const known = runs.at(-1)?.runId;
  if (known !== undefined) return known;
  const runId = await submitRun(server, "lead", releaseTask);
  await waitsForPerson(server, runId);
  return runId;
}

/** A stored run that looks as if a worker had ended it. */
interface EndedRun {
  readonly name: string;
  readonly title: string;
  readonly userId?: string | null;
  readonly tenantId?: string | null;
  readonly createdAt: number;
  readonly status?: RunStatus;
  readonly costUsd?: number;
  readonly metadata?: JsonObject;
  readonly error?: string;
}

/** Stores a run that has ended. Agents of the server do not know it, so no worker takes it. */
export async function storeEndedRun({ store }: PageServer, run: EndedRun): Promise<string> {
  const { name, title, userId = null, tenantId = null, createdAt, status = "failed", costUsd = 0 } = run;
  const runId = formatRunId(name);
  const agentId = formatAgentId({ name: "clerk" });
  const sessionId = formatSessionId(name);
  const event = { runId, taskId: rootTaskId, agentId, parentId: null, at: createdAt };
  const task = {
    status,
    ...(run.error !== undefined && { failure: { code: "internal", message: run.error } }),
  };
  const end = { status, usage: { ...noUsage, costUsd }, costUsd, turns: 1 };
  await store.journal.create(
    {
      runId,
      kind: "invocation",
      agentId,
      sessionId,
      tenantId,
      userId,
      priority: Priority.NORMAL,
      agentVersion: null,
      title,
      metadata: run.metadata ?? {},
      createdAt,
      startAt: null,
      recoveries: 0,
    },
    { number: 0, at: createdAt },
  );
  await store.leases.enlist("stored");
  const lease = await store.leases.seize(runId, "stored");
  if (lease === undefined) throw new Error(`run ${runId} cannot be seized`);
  await store.journal.append(lease, {
    number: 1,
    at: createdAt + 60_000,
    events: [
      { ...event, seq: 0, type: "task_end", data: task } as never,
      { ...event, seq: 1, type: "run_end", data: end } as never,
    ],
  });
  await store.leases.release(lease, { kind: "ended" });
  return runId;
}
