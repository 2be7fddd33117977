import { describe, expect, test } from "vitest";
import { userMessage } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { agent } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const messageOf = () => userMessage("hello");
const idle = agent("idle", async () => null, { messageOf });

describe.each(twoStores)("refused arguments in a %s store", (_name, prepare) => {
  const open = async () => {
    const store = await (await prepare())();
    return { store, runtime: await createRuntime({ store }) };
  };

  test.each(["tenantId", "userId", "channel"])(
    "submit() refuses an empty %s, and so does forTenant()",
    async (name) => {
      const { runtime } = await open();
      await expect(runtime.submit(idle, null, { [name]: "" })).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining(`invalid ${name} of a run: it is empty`),
      });
      expect((await runtime.list()).runs).toEqual([]);
      await runtime.close();
    },
  );

  test("list(), approvals() and sessions.list() refuse a number as cursor", async () => {
    const { runtime } = await open();
    const query = { after: 5 } as never;
    const refused = { code: "invalid_argument" };
    await expect(runtime.list(query)).rejects.toMatchObject(refused);
    await expect(runtime.approvals(query)).rejects.toMatchObject(refused);
    await expect(runtime.sessions.list(query)).rejects.toMatchObject(refused);
    await runtime.close();
  });

  test("R7: the tenant id of a record may be exactly as long as that of a run", async () => {
    const { store, runtime } = await open();
    const record = { namespace: "n", key: "k", value: 1 };
    const longest = "t".repeat(1_024);
    await runtime.submit(idle, null, { tenantId: longest });
    expect(await store.records.put({ ...record, tenantId: longest }, "absent")).toMatchObject({
      kind: "stored",
    });
    const longer = store.records.put({ ...record, tenantId: `${longest}t` }, "absent");
    await expect(longer).rejects.toMatchObject({ code: "invalid_argument" });
    await runtime.close();
  });

  test("ctx.race() without branches fails with invalid_argument instead of waiting forever", async () => {
    const { runtime } = await open();
    const racer = agent("racer", async (ctx) => (await ctx.race({})).winner);
    const { status, error } = await (await runtime.submit(racer, null)).result();
    expect({ status, error }).toMatchObject({
      status: "failed",
      error: { code: "invalid_argument", message: expect.stringContaining("expected at least one branch") },
    });
    await runtime.close();
  });

  test("S2: resend() of an input whose session was deleted is refused and creates no session", async () => {
    const { store, runtime } = await open();
    const failing = agent("failing", async (ctx) => ctx.llm({} as never) as never, { messageOf });
    const run = await runtime.submit(failing, null, { sessionId: "talk" });
    expect((await run.result()).status).toBe("failed");
    await runtime.sessions.delete("talk");
    await expect(runtime.sessions.resend(run.runId)).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("session talk was deleted"),
    });
    expect((await store.sessions.list()).sessions).toEqual([]);
    await runtime.close();
  });
});
