import { describe, inject } from "vitest";
import { crashLoopCases } from "../crash/crash-loop-cases.ts";
import { crashServer } from "../crash/crash-store.ts";
import { isFull } from "../effort.ts";
import { onDeadlySite } from "../crash/deadly-site.ts";
import { cutCase, cutPlace, soakCases } from "../scale/soak-cases.ts";

process.env[crashServer] = inject("postgresUrl");

// In `npm test` these cases run on SQLite and, in part, with the Restate engine on PostgreSQL.
describe.runIf(isFull)("a run that kills its process, on PostgreSQL", { concurrent: true }, () => {
  crashLoopCases((check) => onDeadlySite(check));
});

describe("long runs on PostgreSQL", () => {
  soakCases(() => undefined);
  cutCase("the database", () => Promise.all([0, 1].map(() => cutPlace(inject("postgresUrl")))));
});
