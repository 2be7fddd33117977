import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { Agent, openRuntime, type Runtime } from "../../src/entries/index.ts";
import { RestateAdmin, restate } from "../../src/assembly/restate.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { isFull } from "../effort.ts";
import { newSchema, query } from "../postgres/schemas.ts";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { main, reeve, reeveProcess } from "../surfaces/cli/reeve-process.ts";
import { startWorker, type RunningWorker } from "../surfaces/cli/worker-process.ts";
import { Balancer } from "./balancer.ts";
import { RestateServer } from "./server.ts";

let server: RestateServer;
let services = 0;

beforeAll(async () => {
  server = await RestateServer.start();
});
afterAll(() => server.stop());

/** The workers of one test, which share a service and a store. */
interface Site {
  readonly service: string;
  readonly runtime: Runtime;
  readonly start: () => Promise<RunningWorker>;
  readonly submit: (input: string) => Promise<string>;
  readonly output: (runId: string) => Promise<unknown>;
}

/** Opens a runtime that only submits, and registers the address that the workers of a test share. */
async function newSite(
  folder: string,
  url: string,
  store: `sqlite:${string}` | `postgres://${string}`,
): Promise<Site> {
  const service = `worker-${process.pid}-${++services}`;
  const balancer = await Balancer.open();
  onTestFinished(() => balancer.close());
  const flags = ["--engine", "restate", "--ingress-url", server.ingressUrl, "--service", service];
  let isDeployed = false;
  const start = async (): Promise<RunningWorker> => {
    const args = [...flags, "--endpoint-port", "0", "--slice", "5", "--store", store];
    const worker = await startWorker({ main, cwd: folder, env: env(url), args });
    const opened = await worker.logged(({ event }) => event === "endpoint_opened");
    expect(opened).toMatchObject({ host: "127.0.0.1", service });
    balancer.add(opened["port"] as number);
    if (!isDeployed) await new RestateAdmin(server.adminUrl).deploy(balancer.uri);
    isDeployed = true;
    return worker;
  };
  const first = await start();
  first.signal("SIGTERM");
  expect(await first.ended).toBe(0);
  const runtime = await openRuntime({
    store,
    engine: restate({ ingressUrl: server.ingressUrl, service }),
    sameName: "replace",
  });
  onTestFinished(() => runtime.close());
  return {
    service,
    runtime,
    start,
    submit: async (input) => {
      const agent = new Agent({ name: "assistant", model: scriptedModel([]) });
      return (await runtime.submit(agent, input, { streaming: true })).runId;
    },
    output: async (runId) => (await (await runtime.find(runId))?.result())?.output,
  };
}

// The tests of `reeve serve` run on the other store in `npm test`.
const stores = isFull ? (["SQLite", "PostgreSQL"] as const) : (["SQLite"] as const);

describe.for(stores)("reeve worker --engine restate, %s store", (kind) => {
  const storeOf = async (folder: string): Promise<`sqlite:${string}` | `postgres://${string}`> => {
    if (kind === "SQLite") {
      await mkdir(join(folder, ".reeve"), { recursive: true });
      return `sqlite:${join(folder, ".reeve/reeve.db")}`;
    }
    const schema = newSchema();
    onTestFinished(async () => void (await query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)));
    return `${inject("postgresUrl")}?schema=${schema}` as `postgres://${string}`;
  };

  test("a Restate worker answers its probes and hands its run over on SIGTERM without repeating the call in flight", async () => {
    const answer = Promise.withResolvers<{ readonly tool: string; readonly input: { path: string } }>();
    const { folder, url, asked, requests } = await setUp((request) =>
      request === 2 ? answer.promise : { text: "Green." },
    );
    const { start, submit, output } = await newSite(folder, url, await storeOf(folder));
    const one = await start();
    expect(await output(await submit("Hi"))).toBe("Green.");
    for (const path of ["healthz", "readyz"]) expect((await fetch(`${one.url}/${path}`)).status).toBe(200);
    expect(await (await fetch(`${one.url}/metrics`)).text()).toContain('engine="restate"');
    const runId = await submit("Which colour?");
    await asked(2);
    one.signal("SIGTERM");
    await one.logged(({ event }) => event === "worker_draining");
    expect((await fetch(`${one.url}/readyz`)).status).toBe(503);
    answer.resolve({ tool: "read", input: { path: "notes.txt" } });
    expect(await one.ended).toBe(0);
    expect(requests).toHaveLength(2);
    expect(one.lines.findLast(({ event }) => event === "run_released")).toMatchObject({
      runId,
      rest: "ready",
    });
    const other = await start();
    expect(await output(runId)).toBe("Green.");
    expect(requests).toHaveLength(3);
    expect(JSON.stringify(requests[2])).toContain("The lamp is green.");
    other.signal("SIGTERM");
    expect(await other.ended).toBe(0);
  });
});

describe("reeve worker --engine restate", () => {
  test("/readyz of a Restate worker answers 503 with the reason while Restate does not answer, and 200 afterwards", async () => {
    const { folder, url } = await setUp(() => undefined);
    // Connections pass to Restate while it is listed. Otherwise they end at once.
    const way = await Balancer.open();
    onTestFinished(() => way.close());
    way.add(Number(new URL(server.ingressUrl).port));
    const args = ["--engine", "restate", "--ingress-url", way.uri, "--endpoint-port", "0"];
    const worker = await startWorker({ main, cwd: folder, env: env(url), args });
    const ready = async (): Promise<string> => {
      const answer = await fetch(`${worker.url}/readyz`);
      return `${answer.status} ${(await answer.text()).trim()}`;
    };
    const reason = `503 the ingress of Restate at ${way.uri} cannot be reached`;
    await expect.poll(ready).toBe("200 ready");
    way.remove(Number(new URL(server.ingressUrl).port));
    way.cut();
    await expect.poll(ready).toContain(reason);
    expect((await fetch(`${worker.url}/healthz`)).status).toBe(200);
    // It accepts connections and says nothing.
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    way.add(port);
    await expect.poll(ready).toMatch(/cannot be reached: .*timeout/u);
    way.remove(port);
    way.cut();
    way.add(Number(new URL(server.ingressUrl).port));
    await expect.poll(ready).toBe("200 ready");
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
  });

  const refused = [
    [
      ["--engine", "restate", "--ingress-url", "http://127.0.0.1:9"],
      7,
      "the ingress of Restate at http://127.0.0.1:9 cannot be reached",
    ],
    [["--engine", "restate", "--ingress-url", "nowhere"], 2, 'invalid ingressUrl "nowhere"'],
    [["--engine", "restate", "--ingress-url", "restate:8080"], 2, 'invalid ingressUrl "restate:8080"'],
    [["--engine", "restate", "--endpoint-port", "70000"], 2, "invalid --endpoint-port 70000"],
    [["--engine", "restate", "--slice", "0"], 2, "invalid --slice 0"],
    [["--engine", "restate", "--endpoint-host", "0.0.0.0"], 2, "0.0.0.0 without an identity key"],
    [
      [
        "--engine",
        "restate",
        "--ingress-url",
        "http://127.0.0.1:9",
        "--identity-key",
        "publickeyv1_a",
        "publickeyv1_b",
      ],
      7,
      "the ingress of Restate at http://127.0.0.1:9 cannot be reached",
    ],
    [["--identity-key", "publickeyv1_a"], 2, "--identity-key needs the Restate engine; add --engine restate"],
    [["--engine", "restat"], 2, "restat"],
    [["--engine", "restate", "--ingres-url", "x"], 2, "Did you mean --ingress-url?"],
    [["--service", "runs"], 2, "--service needs the Restate engine; add --engine restate"],
  ] as const;
  test.for(refused)(
    "reeve worker --engine restate with %j ends with code %i and says %s",
    async ([args, code, message]) => {
      const { folder } = await setUp(() => undefined);
      const ended = await reeve(["worker", ...args], { cwd: folder });
      expect([ended.code, ended.talk]).toEqual([code, expect.stringContaining(message)]);
    },
  );

  test("reeve worker --engine restate names the package of the Restate SDK if it is not installed", async () => {
    const { folder } = await setUp(() => undefined);
    const hooks = join(folder, "without-sdk.mjs");
    await writeFile(
      hooks,
      `import { registerHooks } from "node:module";
       registerHooks({
         resolve(name, context, next) {
           if (name !== "@restatedev/restate-sdk") return next(name, context);
           throw Object.assign(new Error("Cannot find package " + name), { code: "ERR_MODULE_NOT_FOUND" });
         },
       });`,
    );
    const args = ["--engine", "restate", "--ingress-url", server.ingressUrl, "--endpoint-port", "0"];
    const { code, talk } = await reeveProcess(["worker", ...args], {
      cwd: folder,
      env: { NODE_OPTIONS: `--import file://${hooks}` },
    });
    expect([code, talk]).toEqual([7, expect.stringContaining("npm install @restatedev/restate-sdk")]);
  });

  test("reeve worker --engine restate refuses a port that is in use and names the address", async () => {
    const { folder } = await setUp(() => undefined);
    const { port } = new URL(server.ingressUrl);
    const args = ["--engine", "restate", "--ingress-url", server.ingressUrl, "--endpoint-port", port];
    const { code, talk } = await reeve(["worker", ...args], { cwd: folder });
    expect([code, talk]).toEqual([2, expect.stringContaining(`127.0.0.1:${port}: the port is in use`)]);
  });

  test("a worker of the local engine refuses a store of the Restate engine and names the engine", async () => {
    const { folder, url } = await setUp(() => undefined);
    const store = `sqlite:${join(folder, "other.db")}` as const;
    await newSite(folder, url, store);
    const { code, talk } = await reeve(["worker", "--store", store], { cwd: folder });
    expect([code, talk]).toEqual([2, expect.stringContaining("restate")]);
  });
});
