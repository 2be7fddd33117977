import fc from "fast-check";
import { expect, it } from "vitest";
import { CompactingMap } from "../../../src/runtime/process/compacting-map.ts";

const changes = fc.array(fc.record({ key: fc.integer({ min: 0, max: 12 }), goes: fc.boolean() }), {
  maxLength: 200,
});

it("has what a map has, in the same order, whatever comes and goes", () => {
  fc.assert(
    fc.property(changes, (all) => {
      const [passing, plain] = [new CompactingMap<number, number>(), new Map<number, number>()];
      for (const [index, { key, goes }] of all.entries()) {
        for (const map of [passing, plain]) {
          if (goes) map.delete(key);
          else map.set(key, index);
        }
        expect([...passing]).toEqual([...plain]);
        expect([...passing.values()]).toEqual([...plain.values()]);
        expect([passing.size, passing.has(key), passing.get(key)]).toEqual([
          plain.size,
          plain.has(key),
          plain.get(key),
        ]);
      }
    }),
  );
});

it("goes on with what was there when a loop began, though all of it goes", () => {
  const map = new CompactingMap<string, string>();
  for (const each of ["one", "two", "three"]) map.set(each, each);
  const met: string[] = [];
  for (const each of map.values()) {
    met.push(each);
    map.delete(each);
  }
  expect(met).toEqual(["one", "two", "three"]);
  expect(map.size).toBe(0);
});
