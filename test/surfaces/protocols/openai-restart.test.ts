import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { user } from "./test-openai.ts";

const script = fileURLToPath(new URL("openai-worker.ts", import.meta.url));
let folder: string;
let child: ChildProcess;
let port = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-openai-"));
  await start();
}, 60_000);
afterAll(async () => {
  await kill();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

/** Starts the server, at the same port after the first time. */
async function start(): Promise<void> {
  const args = [script, join(folder, "reeve.db"), String(port)];
  const started = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  child = started;
  const [printed] = (await once(started.stdout, "data")) as [Buffer];
  port = Number(printed.toString());
}

async function kill(): Promise<void> {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

async function readAll(items: AsyncIterable<unknown>): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for await (const item of items) all.push(item);
  return all;
}

it("an OpenAI client continues its session and its run by idempotency key at a server that was killed and restarted", async () => {
  const url = `http://127.0.0.1:${port}`;
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const session = { headers: { "x-reeve-session": "talk" } };
  const first = await client.chat.completions.create({ model: "echo", messages: [user("One")] }, session);
  expect(first.choices[0]?.message.content).toBe("One");

  const keyed = { headers: { "Idempotency-Key": "job-1" } };
  const body = { model: "slow", messages: [user("Work")] };
  const { data: stream, response } = await client.chat.completions
    .create({ ...body, stream: true }, keyed)
    .withResponse();
  const runId = response.headers.get("x-reeve-run");
  const cut = Promise.allSettled([readAll(stream)]);
  await kill();
  // The connection broke before the end of the answer, so the client does not take it for complete.
  expect((await cut).map(({ status }) => status)).toEqual(["rejected"]);
  await start();

  const again = client.chat.completions.create(body, keyed).withResponse();
  const signalled = await fetch(`${url}/api/runs/${runId}/signal`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "go", value: 7 }),
  });
  expect(signalled.status).toBe(202);
  const { data: finished, response: second } = await again;
  expect(finished.choices[0]?.message.content).toBe("Finished with 7.");
  expect(second.headers.get("x-reeve-run")).toBe(runId);
  const runs = (await (await fetch(`${url}/api/runs?agentId=slow`)).json()) as {
    readonly runs: readonly unknown[];
  };
  expect(runs.runs).toHaveLength(1);

  const next = await client.chat.completions.create({ model: "echo", messages: [user("Two")] }, session);
  expect(next.choices[0]?.message.content).toBe("One, Two");
});
