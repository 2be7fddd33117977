import { expect, it } from "vitest";
import { Priority } from "../../../src/kernel/index.ts";
import { TaskSlots } from "../../../src/runtime/process/task-slots.ts";
import { settle } from "../runtime-setup.ts";

/** Requests slots while the only one is taken, and returns the names in the order in which they are served. */
async function serve(
  requests: readonly (readonly [string, Priority, (string | null)?, string?])[],
): Promise<string[]> {
  const slots = new TaskSlots(1);
  await slots.take(Priority.NORMAL);
  const order: string[] = [];
  for (const [name, priority, tenantId, turn] of requests) {
    void slots.take(priority, tenantId, turn).then(() => order.push(name));
  }
  for (const _ of requests) {
    slots.give();
    await settle();
  }
  return order;
}

it("TaskSlots serves CRITICAL four times as often as NORMAL", async () => {
  const requests = Array.from({ length: 8 }, (_, index) => index).flatMap((index) => [
    [`critical ${index}`, Priority.CRITICAL] as const,
    [`normal ${index}`, Priority.NORMAL] as const,
  ]);
  const order = (await serve(requests)).map((name) => name.split(" ")[0]);
  const firstTen = order.slice(0, 10);
  expect(firstTen.filter((name) => name === "critical")).toHaveLength(8);
  expect(firstTen.filter((name) => name === "normal")).toHaveLength(2);
});

it("TaskSlots serves BACKGROUND only when no other task waits, and equal priorities in order", async () => {
  const order = await serve([
    ["background", Priority.BACKGROUND],
    ["first", Priority.LOW],
    ["second", Priority.LOW],
  ]);
  expect(order).toEqual(["first", "second", "background"]);
});

it("TaskSlots serves tenants of equal priority in turn", async () => {
  const order = await serve([
    ["a1", Priority.NORMAL, "a"],
    ["a2", Priority.NORMAL, "a"],
    ["a3", Priority.NORMAL, "a"],
    ["b1", Priority.NORMAL, "b"],
  ]);
  expect(order.indexOf("b1")).toBe(1);
});

it.each([null, "acme"])("TaskSlots serves users and agents of tenant %s in turn", async (tenantId) => {
  const order = await serve([
    ["a1", Priority.NORMAL, tenantId, "ann"],
    ["a2", Priority.NORMAL, tenantId, "ann"],
    ["a3", Priority.NORMAL, tenantId, "ann"],
    ["b1", Priority.NORMAL, tenantId, "bob"],
    ["b2", Priority.NORMAL, tenantId, "bob"],
  ]);
  expect(order).toEqual(["a1", "b1", "a2", "b2", "a3"]);
});
