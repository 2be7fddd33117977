import fc from "fast-check";
import { expect, it } from "vitest";
import { CompactingMap } from "../../../src/runtime/process/compacting-map.ts";

const changes = fc.array(fc.record({ key: fc.integer({ min: 0, max: 12 }), isDeleted: fc.boolean() }), {
  maxLength: 200,
});

it("CompactingMap has the same entries in the same order as a Map after any sets and deletions", () => {
  fc.assert(
    fc.property(changes, (all) => {
      const [compacting, plain] = [new CompactingMap<number, number>(), new Map<number, number>()];
      for (const [index, { key, isDeleted }] of all.entries()) {
        for (const map of [compacting, plain]) {
          if (isDeleted) map.delete(key);
          else map.set(key, index);
        }
        expect([...compacting]).toEqual([...plain]);
        expect([...compacting.values()]).toEqual([...plain.values()]);
        expect([compacting.size, compacting.has(key), compacting.get(key)]).toEqual([
          plain.size,
          plain.has(key),
          plain.get(key),
        ]);
      }
    }),
  );
});

it("CompactingMap.values() iterates over the entries at its start even if all of them are deleted meanwhile", () => {
  const map = new CompactingMap<string, string>();
  for (const each of ["one", "two", "three"]) map.set(each, each);
  const visited: string[] = [];
  for (const each of map.values()) {
    visited.push(each);
    map.delete(each);
  }
  expect(visited).toEqual(["one", "two", "three"]);
  expect(map.size).toBe(0);
});
