import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openRuntime } from "../../../src/entries/index.ts";
import { workflow } from "../../../src/entries/workflow.ts";
import { reeve, reeveProcess } from "./reeve-process.ts";

const source = (step: string): string => `
import { workflow } from "reeve/workflow";
export const order = workflow("order", async (ctx) => {
  await ctx.step("reserve", () => { throw new Error("a body was executed"); });
  await ctx.step(${step}, () => { throw new Error("a body was executed"); });
  await ctx.waitForSignal("paid");
});
`;

test("reeve check-replay names the first difference, ends with 1, and changes no byte of the store", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-check-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const file = join(folder, "reeve.db");
  const store = `sqlite:${file}` as const;
  const runtime = await openRuntime({ store });
  const order = workflow("order", async (ctx) => {
    await ctx.step("reserve", () => 1);
    await ctx.step("charge", () => 2);
    await ctx.waitForSignal("paid");
  });
  const run = await runtime.start(order, null, { runId: "run_order-1" });
  for await (const event of run.events()) if (event.type === "task_suspend") break;
  await runtime.close();
  const before = await readFile(file);
  const check = async (name: string, step: string, ...args: string[]): ReturnType<typeof reeve> => {
    const path = join(folder, `${name}.ts`);
    await writeFile(path, source(step));
    return reeveProcess(["check-replay", path, "--store", store, ...args]);
  };

  const same = await check("same", '"charge"');
  expect([same.code, same.out]).toEqual([0, []]);
  expect(same.talk).toContain("1 runs with 2 recorded steps were replayed: 0 differences.");

  const renamed = await check("renamed", '"pay"', "--runs", "run_order", "--json");
  expect(renamed.code).toBe(1);
  expect(renamed.out.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    {
      runId: "run_order-1",
      taskId: "t0",
      kind: "changed",
      position: "1",
      recorded: "step charge",
      asked: "step pay",
    },
  ]);

  const random = await check("random", '"charge" + Math.random()', "--runs", "agent=order");
  expect(random.code).toBe(1);
  expect(random.out[0]).toMatch(
    /^run_order-1 {2}t0 {2}1 {2}unsteady {2}.*Math\.random\(\).*random\.ts.*ctx\.random\(\)/u,
  );

  const given = ["check-replay", join(folder, "absent.ts"), "--store", store];
  const mixed = await reeve([...given, "--runs", "agent=order", "run_order-1"]);
  expect([mixed.code, mixed.talk]).toEqual([2, expect.stringMatching(/cannot be combined/u)]);
  expect((await reeve(given)).code).toBe(3);
  expect((await readFile(file)).equals(before)).toBe(true);
});
