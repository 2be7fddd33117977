import type { Workload } from "../workload.ts";
import { approval } from "./approval.ts";
import { askReply } from "./ask-reply.ts";
import { changedForks } from "./changed-forks.ts";
import { changingTool } from "./changing-tool.ts";
import { correctedUsage } from "./corrected-usage.ts";
import { countedReservation } from "./counted-reservation.ts";
import { deadline } from "./deadline.ts";
import { failedBranches } from "./failed-branches.ts";
import { fork } from "./fork.ts";
import { largeValues } from "./large-values.ts";
import { liveProgram } from "./live-program.ts";
import { lostRace } from "./lost-race.ts";
import { preemption } from "./preemption.ts";
import { sleep } from "./sleep.ts";
import { spawnTree } from "./spawn-tree.ts";
import { tenants } from "./tenants.ts";
import { tightBudget } from "./tight-budget.ts";
import { toolLoop } from "./tool-loop.ts";
import { topUps } from "./top-ups.ts";
import { unreadableOutput } from "./unreadable-output.ts";

/** Workloads that must keep every promise, by the name that a worker receives. */
export const workloads: Readonly<Record<string, Workload>> = {
  toolLoop,
  spawnTree,
  askReply,
  sleep,
  approval,
  changingTool,
  deadline,
  preemption,
  fork,
  changedForks,
  tightBudget,
  topUps,
  countedReservation,
  correctedUsage,
  largeValues,
  liveProgram,
  lostRace,
  failedBranches,
  unreadableOutput,
  tenants,
};
