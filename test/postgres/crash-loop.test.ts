import { describe, inject } from "vitest";
import { crashLoopCases } from "../crash/crash-loop-cases.ts";
import { crashServer } from "../crash/crash-store.ts";
import { onDeadlySite } from "../crash/deadly-site.ts";

process.env[crashServer] = inject("postgresUrl");

describe.concurrent("a run that kills its process, on PostgreSQL", () => {
  crashLoopCases((check) => onDeadlySite(check));
});
