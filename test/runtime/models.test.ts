import fc from "fast-check";
import { it } from "vitest";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import { models } from "./models/index.ts";

it.each(Object.entries(models))(
  "%s",
  (_says, model) =>
    fc.assert(
      model(async () => memoryStore({ hash: sha256, maxDeliveries: 2 })),
      { numRuns: 10_000 },
    ),
  60_000,
);
