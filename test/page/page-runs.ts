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
