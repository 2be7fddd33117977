import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { RestateAdmin } from "../../src/assembly/restate.ts";
import { isFull } from "../effort.ts";
import { newSchema, query } from "../postgres/schemas.ts";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { main, reeve } from "../surfaces/cli/reeve-process.ts";
import { serve } from "../surfaces/cli/serve-process.ts";
import { startWorker, type RunningWorker } from "../surfaces/cli/worker-process.ts";
import { Balancer } from "./balancer.ts";
import { RestateServer } from "./server.ts";

let server: RestateServer;

beforeAll(async () => {
  server = await RestateServer.start();
});
afterAll(() => server.stop());

interface RunSummary {
  readonly runId: string;
  readonly status: string;
}

/** Calls the API of a server as its page does. */
function apiOf(origin: string) {
  const call = async <Answer>(path: string, body?: object): Promise<Answer> => {
    const post = { method: "POST", headers: { "content-type": "application/json" } };
    const answer = await fetch(
      origin + path,
      body === undefined ? {} : { ...post, body: JSON.stringify(body) },
    );
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Answer;
  };
  return {
    start: async (input: string): Promise<string> =>
      (await call<{ readonly run: RunSummary }>("/api/runs", { agent: "assistant", input })).run.runId,
    result: (runId: string) => call<RunSummary>(`/api/runs/${runId}/result?waitMs=60000`),
    post: (runId: string, command: string, body: object) => call(`/api/runs/${runId}/${command}`, body),
    asked: async (runId: string): Promise<string | undefined> => {
      const { approvals } = await call<{ readonly approvals: readonly { readonly approvalId: string }[] }>(
        `/api/runs/${runId}/approvals`,
      );
      return approvals[0]?.approvalId;
    },
  };
}

// The tests of `reeve worker` run on the other store in `npm test`.
const stores = isFull ? (["SQLite", "PostgreSQL"] as const) : (["PostgreSQL"] as const);

describe.for(stores)("reeve serve --engine restate, %s store", (kind) => {
  const storeOf = async (folder: string): Promise<string> => {
    if (kind === "SQLite") {
      await mkdir(join(folder, ".reeve"), { recursive: true });
      return `sqlite:${join(folder, ".reeve/reeve.db")}`;
    }
    const schema = newSchema();
    onTestFinished(async () => void (await query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)));
    return `${inject("postgresUrl")}?schema=${schema}`;
  };

  test("runs that callers of reeve serve start, approve and cancel are executed by workers that Restate invokes", async () => {
    const { folder, url } = await setUp((_number, { messages }) => {
      const said = JSON.stringify(messages);
      if (said.includes('"role":"tool"')) return { text: "Written." };
      return said.includes("note")
        ? { tool: "write", input: { path: "note.txt", content: "green" } }
        : { text: "Hello." };
    });
    const service = `serve-${process.pid}-${kind.toLowerCase()}`;
    const store = await storeOf(folder);
    const balancer = await Balancer.open();
    onTestFinished(() => balancer.close());
    const shared = ["--engine", "restate", "--ingress-url", server.ingressUrl, "--service", service];
    // A machine without bubblewrap has no sandbox, which commands would need.
    const flags = [...shared, "--store", store, "--tools", "all", "--sandbox", "off"];
    const admin = new RestateAdmin(server.adminUrl);
    const start = async (): Promise<RunningWorker> => {
      const worker = await startWorker({
        main,
        cwd: folder,
        env: env(url),
        args: [...flags, "--endpoint-port", "0"],
      });
      const { port } = await worker.logged(({ event }) => event === "endpoint_opened");
      balancer.add(port as number);
      return worker;
    };
    const first = await start();
    await admin.deploy(balancer.uri);
    first.signal("SIGTERM");
    expect(await first.ended).toBe(0);
    const serving = await serve(folder, url, "--no-token", "--no-worker", ...flags);
    const api = apiOf(serving.link.origin);

    // No worker runs, so the server itself has told Restate.
    const greeted = await api.start("Hi");
    const keys = async (): Promise<readonly string[]> => {
      const sql = `SELECT target_service_key AS key FROM sys_invocation WHERE target_service_name = '${service}'`;
      return (await admin.query<{ readonly key: string }>(sql)).map(({ key }) => key);
    };
    await expect.poll(keys).toContain(greeted);
    const worker = await start();
    expect(await api.result(greeted)).toMatchObject({ status: "completed", output: "Hello." });

    const suspended = (id: string) =>
      worker.logged(
        ({ event, runId, rest }) => event === "run_released" && runId === id && rest === "suspended",
      );
    const approved = await api.start("Write a note");
    const cancelled = await api.start("Write another note");
    await Promise.all([suspended(approved), suspended(cancelled)]);
    const approvalId = await api.asked(approved);
    await api.post(approved, "decide", { approvalId, decision: "approved" });
    expect(await api.result(approved)).toMatchObject({ status: "completed", output: "Written." });
    expect(await readFile(join(folder, "note.txt"), "utf8")).toBe("green");
    await api.post(cancelled, "cancel", {});
    expect(await api.result(cancelled)).toMatchObject({ status: "cancelled" });
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(await serving.stop("SIGTERM")).toBe(0);
  });
});

const refused = [
  [["--engine", "restate"], "reeve serve executes no runs with the Restate engine; add --no-worker"],
  [["--no-worker", "--service", "runs"], "--service needs the Restate engine; add --engine restate"],
  [["--no-worker", "--engine", "restat"], "restat"],
] as const;
test.for(refused)("reeve serve %j ends with code 2 and says %s", async ([args, message]) => {
  const { folder } = await setUp(() => undefined);
  const ended = await reeve(["serve", "--port", "0", ...args], { cwd: folder });
  expect([ended.code, ended.talk]).toEqual([2, expect.stringContaining(message)]);
});
