import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Agent, fallback, openRuntime, type Runtime } from "../../../src/entries/index.ts";
import type { UsageRow } from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { reeve } from "./reeve-process.ts";

const prices = { find: () => ({ inputUsd: 1e-6, outputUsd: 4e-6 }) };
const usage = { inputTokens: 40, outputTokens: 15, cacheReadTokens: 30 };

interface Desk {
  readonly cli: (...args: string[]) => ReturnType<typeof reeve>;
  /** Opens a runtime on the store whose day is this one, calls `work` with it, and closes it. */
  readonly on: (day: string, work: (runtime: Runtime) => Promise<void>) => Promise<void>;
}

async function desk(): Promise<Desk> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-cost-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  return {
    cli: (...args) => reeve([...args, "--store", store]),
    on: async (day, work) => {
      const runtime = await openRuntime({ store, prices, clock: new FakeClock(Date.parse(day)) });
      try {
        await work(runtime);
      } finally {
        await runtime.close();
      }
    },
  };
}

function clerk(name: string, modelId: string, calls = 1): Agent {
  return new Agent({
    name,
    model: scriptedModel(
      Array.from({ length: calls }, () => ({ text: "Done.", usage })),
      { modelId },
    ),
  });
}

/** Two days with three runs of two users, two agents and two models. All runs are deleted afterwards. */
async function twoDays({ on }: Desk): Promise<void> {
  await on("2026-11-15", async (runtime) => {
    await clerk("lead", "large").invoke("?", { runtime, userId: "ann", tenantId: "acme" });
  });
  await on("2026-11-16", async (runtime) => {
    const worker = clerk("worker", "small", 2);
    for (const userId of ["ann", "bob"]) await worker.invoke("?", { runtime, userId, tenantId: "acme" });
    await runtime.collect({ endedBefore: Date.parse("2027-01-01") });
  });
}

test("reeve cost prints what all runs cost by day, after they were deleted and the process has ended", async () => {
  const at = await desk();
  await twoDays(at);
  const { code, out } = await at.cli("cost");
  expect(code).toBe(0);
  expect(out).toEqual([
    "DAY         RUNS  CALLS  INPUT  CACHED  OUTPUT  FAILED  P95   COST",
    "2026-11-15  1     1      40     30      15      0       0.1s  $0.000100",
    "2026-11-16  2     2      80     60      30      0       0.1s  $0.000200",
    "total       3     3      120    90      45      0       0.1s  $0.000300",
  ]);
  expect((await at.cli("cost", "--by", "day")).out).toEqual(out);
});

test("B3: reeve cost prints what unreported calls were charged and what they likely cost, for all runs and for one", async () => {
  const at = await desk();
  let runId = "";
  await at.on("2026-11-16", async (runtime) => {
    const cut = scriptedModel([{ error: new Error("socket hang up") }], { modelId: "small" });
    const whole = scriptedModel([{ text: "Done.", usage }], { modelId: "small" });
    const worker = new Agent({ name: "worker", model: fallback([cut, whole]) });
    ({ runId } = await worker.invoke("?", { runtime }));
  });
  const { out } = await at.cli("cost");
  expect(out[0]).toBe(
    "DAY         RUNS  CALLS  INPUT  CACHED  OUTPUT  FAILED  P95   UNREPORTED  LIKELY     COST",
  );
  expect(out.at(-1)).toMatch(/^total .*\$0\.000200 +\$0\.\d+$/u);
  const one = (await at.cli("cost", runId)).out;
  expect(one.at(-3)).toMatch(/^unreported +1 /u);
  expect(one.at(-1)).toMatch(/^likely +\$0\.000200$/u);
  const shown = (await at.cli("show", runId)).out.find((line) => line.startsWith("spent"));
  expect(shown).toContain("(likely $0.000200)");
});

test("reeve cost --by agent, model, user, tenant and hour prints one line each, and --json one object each", async () => {
  const at = await desk();
  await twoDays(at);
  const names = async (by: string): Promise<string[]> =>
    (await at.cli("cost", "--by", by)).out.slice(1).map((line) => line.split(/ {2,}/u).slice(0, 3).join(" "));
  expect(await names("agent")).toEqual(["lead 1 1", "worker 2 2", "total 3 3"]);
  expect(await names("model")).toEqual(["scripted/large 1 1", "scripted/small 2 2", "total 3 3"]);
  expect(await names("user")).toEqual(["acme/ann 2 2", "acme/bob 1 1", "total 3 3"]);
  expect(await names("tenant")).toEqual(["acme 3 3", "total 3 3"]);
  expect((await names("hour")).map((line) => line.slice(0, 11))).toContain("2026-11-16T");
  const { out } = await at.cli("cost", "--by", "user", "--json");
  const rows = out.map((line) => JSON.parse(line) as UsageRow);
  expect(rows.map(({ key, tenantId, costUsd }) => [key, tenantId, costUsd])).toEqual([
    ["ann", "acme", 2e-4],
    ["bob", "acme", 1e-4],
  ]);
});

test("reeve cost selects by --from, --to, --user and --tenant", async () => {
  const at = await desk();
  await twoDays(at);
  const total = async (...args: string[]): Promise<string | undefined> =>
    (await at.cli("cost", ...args)).out.at(-1)?.split(/ {2,}/u).at(-1);
  expect(await total("--from", "2026-11-16")).toBe("$0.000200");
  expect(await total("--to", "2026-11-15")).toBe("$0.000100");
  expect(await total("--user", "bob")).toBe("$0.000100");
  expect(await total("--tenant", "acme", "--user", "ann")).toBe("$0.000200");
  const none = await at.cli("cost", "--tenant", "other");
  expect(none.out).toEqual([]);
  expect(none.talk).toContain("No usage found. A run adds its usage when it waits, is paused or ends.");
});

test("reeve cost refuses an unknown dimension, an impossible day, and a run together with --by", async () => {
  const at = await desk();
  await twoDays(at);
  const refused = async (...args: string[]): Promise<[number | null, string]> => {
    const { code, talk } = await at.cli("cost", ...args);
    return [code, talk];
  };
  expect(await refused("--by", "week")).toEqual([
    2,
    expect.stringContaining("expected one of day, hour, agent, model, user, tenant"),
  ]);
  expect(await refused("--from", "2026-02-30")).toEqual([
    2,
    expect.stringContaining('invalid from "2026-02-30"'),
  ]);
  expect(await refused("run_1", "--by", "day")).toEqual([
    2,
    expect.stringContaining("--by cannot be combined with a run: use reeve cost run_1"),
  ]);
});
