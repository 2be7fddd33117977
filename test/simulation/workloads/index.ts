import type { Workload } from "../workload.ts";
import { orders } from "./orders.ts";
import { programs } from "./programs.ts";

/** The workloads by name. */
export const workloads: ReadonlyMap<string, Workload> = new Map(
  [programs, orders].map((each) => [each.name, each]),
);
