import { expect, test } from "vitest";
import { runRecord } from "../../../../src/testing/contracts/store-fixtures.ts";
import { newPath, openStore } from "./store-files.ts";

test("S5: of many concurrent submissions through several SQLite connections, exactly one starts a run", async () => {
  const path = await newPath();
  const stores = [await openStore(path), await openStore(path), await openStore(path)];
  const creations = await Promise.all(
    Array.from({ length: 30 }, async (_, index) => {
      const body = { type: "steer", input: index } as const;
      const steering = { id: `submit run_${index}`, from: "ann", at: 1, body };
      return stores[index % 3]?.journal.create(
        runRecord(String(index)),
        { number: 0, at: 1 },
        { steering, always: false },
      );
    }),
  );
  expect(creations.filter((creation) => creation?.kind === "created")).toHaveLength(1);
  expect(creations.filter((creation) => creation?.kind === "busy")).toHaveLength(29);
});
