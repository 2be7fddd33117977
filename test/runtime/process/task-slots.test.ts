import { expect, it } from "vitest";
import { Priority } from "../../../src/kernel/index.ts";
import { TaskSlots } from "../../../src/runtime/process/task-slots.ts";
import { settle } from "../runtime-setup.ts";

/** Everyone asks while the only slot is taken; who gets it, in turn. */
async function served(asked: readonly (readonly [string, Priority, string?])[]): Promise<string[]> {
  const slots = new TaskSlots(1);
  await slots.take(Priority.NORMAL);
  const order: string[] = [];
  for (const [name, priority, tenantId = null] of asked) {
    void slots.take(priority, tenantId).then(() => order.push(name));
  }
  for (const _ of asked) {
    slots.give();
    await settle();
  }
  return order;
}

it("serves priorities by their weight, and nobody starves", async () => {
  const asked = Array.from({ length: 8 }, (_, index) => index).flatMap((index) => [
    [`critical ${index}`, Priority.CRITICAL] as const,
    [`normal ${index}`, Priority.NORMAL] as const,
  ]);
  const order = (await served(asked)).map((name) => name.split(" ")[0]);
  const firstTen = order.slice(0, 10);
  expect(firstTen.filter((name) => name === "critical")).toHaveLength(8);
  expect(firstTen.filter((name) => name === "normal")).toHaveLength(2);
});

it("serves BACKGROUND only when nobody else is ready, and equals in the order of asking", async () => {
  const order = await served([
    ["background", Priority.BACKGROUND],
    ["first", Priority.LOW],
    ["second", Priority.LOW],
  ]);
  expect(order).toEqual(["first", "second", "background"]);
});

it("serves tenants in turn among equals", async () => {
  const order = await served([
    ["a1", Priority.NORMAL, "a"],
    ["a2", Priority.NORMAL, "a"],
    ["a3", Priority.NORMAL, "a"],
    ["b1", Priority.NORMAL, "b"],
  ]);
  expect(order.indexOf("b1")).toBe(1);
});
