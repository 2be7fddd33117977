import { Fault, type JsonValue, type RunHandle } from "../../../kernel/index.ts";
import type { ExperimentReport } from "../../../experiments/index.ts";
import {
  caseRows,
  countsOf,
  inputOfTrial,
  storedReport,
  trialsOf,
  type CaseRow,
  type CaseTrial,
} from "../../http/experiment-reader.ts";
import { reply, route, type RouteRequest } from "../../http/route.ts";
import { after, next, runParams, runSummary } from "../../http/schema/run-schemas.ts";
import {
  anyJson,
  flag,
  integer,
  list,
  nullable,
  number,
  object,
  optional,
  schemaOf,
  text,
} from "../../http/schema/schema.ts";
import { findRun } from "./find-run.ts";

const headMembers = {
  run: runSummary,
  name: text(),
  variants: list(text()),
  scorers: list(text()),
  trials: integer({ description: "How often each case is given to each variant." }),
  expectedTrials: integer({ description: "Number of trials that the experiment consists of." }),
  endedTrials: integer({ description: "Number of trials that have a result." }),
  cases: integer({ description: "Number of cases with a result." }),
};

const listedMembers = {
  ...headMembers,
  isPassed: nullable(
    flag({ description: "Whether all gates hold. null: there are none, or trials are missing." }),
  ),
  reasons: list(text(), { description: "What the gates that do not hold required, and what was measured." }),
  lowest: nullable(
    object(
      { scorer: text(), variant: text(), mean: number() },
      { description: "The lowest mean of a scorer. null: nothing was scored." },
    ),
  ),
};

const listed = {
  status: 200,
  description: "One page of experiments, newest first.",
  schema: object({ experiments: list(object(listedMembers)), next }),
};

/** Number of workflow runs that are examined for one page. */
const runsPerPage = 50;

const listExperiments = route({
  id: "experiments.list",
  method: "GET",
  path: "/api/experiments",
  summary:
    "List experiments, newest first, with the state of their gates. A page looks at up to 50 runs of workflows, and may have fewer experiments. Costs O(events) for those that have changed.",
  scope: "read",
  query: object({ name: optional(text({ minLength: 1, maxLength: 256 })), after }),
  responses: [listed],
  handle: async ({ runtime, server, query }) => {
    const { name, after: from } = query;
    const page = await runtime.list({
      kind: "workflow",
      limit: runsPerPage,
      ...(name !== undefined && { agentName: name }),
      ...(from !== undefined && { after: from }),
    });
    const experiments = [];
    for (const summary of page.runs) {
      const run = await runtime.find(summary.runId);
      const head = run && (await server.experiments.head(run));
      if (run === undefined || head === undefined) continue;
      experiments.push({ run: summary, ...(await server.experiments.listed(run, head, summary)) });
    }
    return reply(listed, { experiments, next: page.next });
  },
});

const found = {
  status: 200,
  description: "The experiment with its cases by variants, and compared with another one if one is named.",
  schema: object({
    ...headMembers,
    report: schemaOf<Omit<ExperimentReport, "result">>({
      type: "object",
      description:
        "Means with intervals, differences to the baseline, gates, cases that changed or do not pass, and problems.",
    }),
    rows: list(schemaOf<CaseRow>({ type: "object" }), {
      description: "The cases, each with the means, the cost and the time of every variant.",
    }),
    baselineRows: nullable(list(schemaOf<CaseRow>({ type: "object" }))),
  }),
};

const getExperiment = route({
  id: "experiments.get",
  method: "GET",
  path: "/api/experiments/{runId}",
  summary:
    "Read an experiment: its cases by variants, its report, and the differences to another run of an experiment. Costs O(events) for runs that have changed.",
  scope: "read",
  params: runParams,
  query: object({
    baseline: optional(text({ minLength: 1, description: "Id of the run to compare with." })),
  }),
  responses: [found],
  handle: async (request) => {
    const { runtime, access, query } = request;
    const { result, run } = await readResult(request, await findRun(request));
    const other =
      query.baseline === undefined
        ? undefined
        : await readResult(request, await findRun({ runtime, access, params: { runId: query.baseline } }));
    return reply(found, {
      run,
      ...countsOf(result),
      report: storedReport(result, other?.result),
      rows: caseRows(result),
      baselineRows: other === undefined ? null : caseRows(other.result),
    });
  },
});

/** Returns the results of the experiment that a run executes. Throws `not_found` if the run executes no experiment. */
async function readResult({ server }: Pick<RouteRequest, "server">, run: RunHandle) {
  const head = await server.experiments.head(run);
  if (head === undefined)
    throw new Fault(
      "not_found",
      `run ${run.runId} is no experiment, or has not begun: choose a run of GET /api/experiments`,
      { details: { runId: run.runId } },
    );
  const summary = await run.summary();
  return { run: summary, result: await server.experiments.result(run, head, summary) };
}

const caseFound = {
  status: 200,
  description: "The trials of a case.",
  schema: object({
    input: anyJson({ description: "What the agents were given. null: the log does not have it." }),
    trials: list(schemaOf<CaseTrial>({ type: "object" }), {
      description: "In the order of their ends, with the tools that they called.",
    }),
  }),
};

const getCase = route({
  id: "experiments.case",
  method: "GET",
  path: "/api/experiments/{runId}/cases",
  summary: "Read the trials of one case: answers, scores and the reasons of judges. Costs O(events).",
  scope: "read",
  params: runParams,
  query: object({ caseId: text({ minLength: 1, maxLength: 4_096 }) }),
  responses: [caseFound],
  handle: async (request) => {
    const run = await findRun(request);
    const trials = await trialsOf(run, request.query.caseId, (runId) => request.runtime.find(runId));
    const input: JsonValue = await inputOfTrial(run, trials[0]?.taskId ?? null);
    return reply(caseFound, { input, trials });
  },
});

export const experimentRoutes = [listExperiments, getExperiment, getCase] as const;
