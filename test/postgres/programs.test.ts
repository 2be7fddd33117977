import { beforeAll, describe, inject } from "vitest";
import { crashServer } from "../crash/crash-store.ts";
import { isFull } from "../effort.ts";
import { programCases } from "../scale/program-cases.ts";

describe.runIf(isFull)("random programs on PostgreSQL", () => {
  beforeAll(() => {
    process.env[crashServer] = inject("postgresUrl");
  });
  programCases(300);
});
