import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { formatAgentId, type HostedAgent, type Runtime } from "../../src/kernel/index.ts";
import { restate } from "../../src/assembly/restate.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { reeve } from "../surfaces/cli/reeve-process.ts";
import { RestateServer } from "./server.ts";
import { temporaryFolder } from "./temporary-folder.ts";

let server: RestateServer;

beforeAll(async () => {
  server = await RestateServer.start();
});
afterAll(() => server.stop());

const deploy = (...args: string[]): ReturnType<typeof reeve> =>
  reeve(["deploy", ...args, "--admin-url", server.adminUrl]);

interface Listed {
  readonly id: string;
  readonly uri: string;
  readonly isCurrent: boolean;
  readonly openInvocations: number;
  readonly openRuns: readonly string[];
}

async function listed(): Promise<readonly Listed[]> {
  const { code, out } = await deploy("list", "--json");
  expect(code).toBe(0);
  return out.map((line) => JSON.parse(line) as Listed);
}

/** A worker of one version, with a port of its own. */
interface Version {
  readonly runtime: Runtime;
  readonly uri: string;
}

async function openVersion(store: `sqlite:${string}`, service: string, agent: HostedAgent): Promise<Version> {
  const listening = Promise.withResolvers<number>();
  const runtime = await createRuntime({
    store,
    engine: restate({
      ingressUrl: server.ingressUrl,
      service,
      listen: { port: 0 },
      onListen: listening.resolve,
      sweepMs: 500,
    }),
    suspendAfterMs: 0,
    onError: () => undefined,
  });
  onTestFinished(() => runtime.close());
  runtime.register(agent);
  return { runtime, uri: `http://127.0.0.1:${await listening.promise}` };
}

/** An agent that notes which version does its work. It makes a call that lasts until `release`, or sleeps until a signal. */
function worker(version: string, done: string[], release: Promise<void>, began: () => void): HostedAgent {
  return {
    id: formatAgentId({ name: "worker" }),
    run: async (ctx) => {
      if (ctx.input === "sleep") await ctx.waitForSignal("go");
      else
        await ctx.step("slow", async () => {
          began();
          await release;
          return null;
        });
      return ctx.step("end", async () => {
        done.push(`${ctx.input as string} on ${version}`);
        return "done";
      });
    },
  };
}

describe("reeve deploy", () => {
  test("reeve deploy removes an old version only when no slice runs on it, and a sleeping run continues on the new version", async () => {
    const folder = await temporaryFolder();
    const store = `sqlite:${folder}/store.db` as const;
    const done: string[] = [];
    const call = Promise.withResolvers<void>();
    const began = Promise.withResolvers<void>();
    const [v1, v2] = ["v1", "v2"].map((version) => worker(version, done, call.promise, began.resolve)) as [
      HostedAgent,
      HostedAgent,
    ];

    const first = await openVersion(store, "versions", v1);
    const registered = await deploy(first.uri);
    expect(registered).toMatchObject({ code: 0 });
    const oldId = registered.out[0] as string;
    const sleeping = await first.runtime.submit(v1, "sleep");
    for await (const event of sleeping.events()) if (event.type === "task_suspend") break;
    const busy = await first.runtime.submit(v1, "call");
    await began.promise;

    const second = await openVersion(store, "versions", v2);
    const { code, out, talk } = await deploy(second.uri);
    expect([code, talk]).toEqual([
      0,
      expect.stringContaining("reeve deploy drain --service versions removes them"),
    ]);
    const newId = out[0] as string;
    expect(await listed()).toMatchObject([
      { id: newId, uri: `${second.uri}/`, isCurrent: true, openInvocations: 0 },
      { id: oldId, uri: `${first.uri}/`, isCurrent: false, openInvocations: 1, openRuns: [busy.runId] },
    ]);
    const kept = await deploy("drain", "--service", "versions");
    expect(kept).toMatchObject({ code: 6, out: [] });
    expect(kept.talk).toContain(`${oldId} at ${first.uri}/ is not removed: it still executes ${busy.runId}`);
    expect(await listed()).toHaveLength(2);

    await sleeping.signal("go", null);
    expect((await sleeping.result()).output).toBe("done");
    expect(done).toEqual(["sleep on v2"]);
    const waiting = deploy("drain", "--service", "versions", "--wait", "120");
    call.resolve();
    expect((await busy.result()).output).toBe("done");
    expect(await waiting).toMatchObject({ code: 0, out: [oldId] });
    expect(await listed()).toMatchObject([{ id: newId, isCurrent: true }]);
    expect(await deploy("drain", "--service", "versions")).toMatchObject({ code: 0, out: [] });

    await first.runtime.close();
    expect((await (await second.runtime.submit(v2, "last")).result()).output).toBe("done");
    expect(done.at(-1)).toBe("last on v2");
    const table = await deploy("list");
    expect(table.out[0]).toContain(`current`);
    expect(table.talk).toContain("Versions: 1");
  });

  test("reeve deploy drain leaves the old versions of other services registered", async () => {
    const folder = await temporaryFolder();
    const store = `sqlite:${folder}/store.db` as const;
    const idle = worker("v1", [], Promise.resolve(), () => undefined);
    const ids: string[] = [];
    for (const service of ["ours", "ours", "theirs", "theirs"]) {
      const { uri } = await openVersion(store, service, idle);
      ids.push(...(await deploy(uri)).out);
    }
    const [oldOurs, ours, oldTheirs, theirs] = ids;
    expect(await deploy("drain")).toMatchObject({ code: 0, out: [] });
    expect(await deploy("drain", "--service", "ours")).toMatchObject({ code: 0, out: [oldOurs] });
    const left = (await listed()).map(({ id }) => id);
    expect(left).toEqual(expect.arrayContaining([ours, oldTheirs, theirs]));
    expect(left).not.toContain(oldOurs);
  });

  const refused = [
    [["nowhere"], 2, 'invalid uri "nowhere"'],
    [["http://127.0.0.1:9"], 7, "refused POST /deployments"],
    [["drain", "--wait", "soon"], 2, "invalid --wait soon"],
    [["list", "--jsn"], 2, "Did you mean --json?"],
    [[], 2, "missing required argument 'URL'"],
  ] as const;
  test.for(refused)("reeve deploy %j ends with code %i and says %s", async ([args, code, message]) => {
    const ended = await deploy(...args);
    expect([ended.code, ended.talk]).toEqual([code, expect.stringContaining(message)]);
  });

  test("reeve deploy names an admin API that does not answer", async () => {
    const { code, talk } = await reeve(["deploy", "list", "--admin-url", "http://127.0.0.1:9"]);
    expect([code, talk]).toEqual([
      7,
      expect.stringContaining("the admin API of Restate at http://127.0.0.1:9 cannot be reached"),
    ]);
  });
});
