import fc from "fast-check";
import { expect, test } from "vitest";
import { VersionedMap } from "../../../src/surfaces/view/versioned-map.ts";
import { propertyRuns } from "../../effort.ts";

test("a version of a versioned map keeps its content, whatever changes the map and its copies receive", () => {
  const change = fc.tuple(fc.integer({ min: 0, max: 200 }), fc.integer(), fc.constantFrom("map", "copy"));
  fc.assert(
    fc.property(fc.array(change, { maxLength: 400 }), fc.integer({ min: 1, max: 40 }), (changes, every) => {
      const map = new VersionedMap<number, number>();
      const expected = new Map<number, number>();
      let copy = map.version().copy();
      const kept: { readonly version: Iterable<number>; readonly values: readonly number[] }[] = [];
      for (const [index, [key, value, target]] of changes.entries()) {
        if (target === "copy") copy.set(key, value);
        else {
          map.set(key, value);
          expected.set(key, value);
        }
        if (index % every !== 0) continue;
        const version = map.version();
        kept.push({ version, values: [...expected.values()] });
        copy = version.copy();
        expect([...copy]).toEqual([...expected.values()]);
      }
      for (const { version, values } of kept) expect([...version]).toEqual(values);
      expect([...expected].map(([key]) => map.get(key))).toEqual([...expected.values()]);
      expect(map.size).toBe(expected.size);
    }),
    { numRuns: propertyRuns(500) },
  );
});
