import { inject } from "vitest";
import { crashServer } from "../crash/crash-store.ts";
import { describeKillPoints } from "../crash/kill-point-cases.ts";

process.env[crashServer] = inject("postgresUrl");

// Mail that wakes a run, and a timer. `npm run test:crash -- --project postgres` kills at every write of more workloads.
describeKillPoints("PostgreSQL, J1, J6, B1, B3, E1, E4, H1, H4", ["approval", "sleep"]);
