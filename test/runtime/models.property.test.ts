import fc from "fast-check";
import { expect, it } from "vitest";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import { propertyRuns } from "../effort.ts";
import { models } from "./models/index.ts";

it.each(Object.entries(models))("the runtime equals its model in the property: %s", async (_says, model) => {
  const open = async () => memoryStore({ hash: sha256, inbox: { maxDeliveries: 2 } });
  await expect(fc.assert(model(open), { numRuns: propertyRuns(10_000) })).resolves.toBeUndefined();
});
