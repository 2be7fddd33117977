import { afterAll, beforeAll, describe, inject, test } from "vitest";
import { formatRunId } from "../../src/kernel/index.ts";
import { crashLease, crashServer } from "../crash/crash-store.ts";
import { deadly, endOf, failed, onDeadlySite, type DeadlySite } from "../crash/deadly-site.ts";
import { RestateServer } from "./server.ts";
import { WorkerSite } from "./worker-site.ts";

let server: RestateServer;

beforeAll(async () => {
  server = await RestateServer.start();
  process.env[crashServer] = inject("postgresUrl");
  // A dead worker counts as alive for an hour.
  process.env[crashLease] = "3600000";
});
afterAll(() => server.stop());

async function onRestateSite(check: (site: DeadlySite) => Promise<void>): Promise<void> {
  const workers = await WorkerSite.open(server);
  try {
    await onDeadlySite(check, workers.address(0));
  } finally {
    await workers.close();
  }
}

describe.concurrent("a run that kills its process, with the Restate engine, while the lease of the dead worker is valid", () => {
  test.for(["tool", "model"])(
    "L7, L15: it fails with crash_loop at its fifth recovery if its %s kills the process",
    async (place, { expect }) => {
      await onRestateSite(async ({ workUntilDone, attempts, events }) => {
        expect(await workUntilDone(place)).toBe(5);
        expect(await attempts()).toEqual(Array.from({ length: 5 }, () => place));
        const log = await events(deadly);
        expect(endOf(log)).toMatchObject(failed(5) as object);
        const lost = log.filter(({ type }) => type === "budget_lost");
        expect(lost.length).toBe(place === "model" ? 5 : 0);
        const last = (await events(formatRunId("peaceful"))).at(-1);
        expect(last).toMatchObject({ data: { status: "completed" } });
      });
    },
  );

  test("L7, L15: it completes if it records a step between the crashes, although it crashes nine times in all", async ({
    expect,
  }) => {
    await onRestateSite(async ({ workUntilDone, events }) => {
      expect(await workUntilDone("steps")).toBe(9);
      expect(endOf(await events(deadly))).toMatchObject({ status: "completed", output: "survived" });
    });
  });
});
