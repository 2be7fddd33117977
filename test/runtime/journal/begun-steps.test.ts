import { expect, test } from "vitest";
import { stepAt } from "../../../src/kernel/index.ts";
import { BegunSteps } from "../../../src/runtime/journal/begun-steps.ts";

test.each([1, 31, 32, 33, 1_000])("BegunSteps keeps %i steps in order until each is recorded", (count) => {
  const begun = new BegunSteps();
  const addresses = Array.from({ length: count }, (_, index) => stepAt("", index));
  for (const [seq, address] of addresses.entries()) begun.set(address, seq);
  const [first] = addresses;
  if (first !== undefined) begun.set(first, 7);
  expect(begun.size).toBe(count);
  expect(begun.keys()).toEqual(addresses);
  expect(addresses.map((address) => begun.get(address))).toEqual(
    addresses.map((_, seq) => (seq === 0 ? 7 : seq)),
  );
  expect(begun.has(stepAt("", count))).toBe(false);
  for (const address of addresses)
    expect([begun.delete(address), begun.delete(address)]).toEqual([true, false]);
  expect([begun.size, begun.keys()]).toEqual([0, []]);
  begun.set(stepAt("", 5), 1);
  expect(begun.keys()).toEqual([stepAt("", 5)]);
});
