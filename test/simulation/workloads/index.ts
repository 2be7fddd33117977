import type { Workload } from "../workload.ts";
import { agents } from "./agents.ts";
import { approvals } from "./approvals.ts";
import { orders } from "./orders.ts";
import { programs } from "./programs.ts";
import { retention } from "./retention.ts";
import { schedules } from "./schedules.ts";
import { servedWorkloads } from "./served.ts";
import { sessions } from "./sessions.ts";
import { teams } from "./teams.ts";
import { versions } from "./versions.ts";

/** The workloads by name. */
export const workloads: ReadonlyMap<string, Workload> = new Map(
  [
    programs,
    orders,
    agents,
    approvals,
    schedules,
    teams,
    sessions,
    versions,
    retention,
    ...servedWorkloads,
  ].map((each) => [each.name, each]),
);
