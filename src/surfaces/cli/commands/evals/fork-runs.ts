import { readFile } from "node:fs/promises";
import { openRuntime } from "../../../../assembly/open-runtime.ts";
import {
  endOf,
  isForkOf,
  reportOf,
  runs,
  textReport,
  type ExperimentReport,
  type ExperimentResult,
  type ForkStart,
  type ForkVariant,
} from "../../../../experiments/index.ts";
import {
  agentNameOf,
  Fault,
  type HostedAgent,
  type RunId,
  type Runtime,
  type Store,
} from "../../../../kernel/index.ts";
import { experimentsOfFile } from "../../../../workspace/workspace-evals.ts";
import { findRunId } from "../../setup/find-run.ts";
import { OpenParts } from "../../setup/open-parts.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { openRunWorkspace } from "../../setup/run-agent.ts";
import { whereQuery } from "../../setup/run-filters.ts";
import { runtimeOptions } from "../../setup/run-workspace.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { positiveInteger } from "../../terminal/number-option.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { prepareReports, writeReports } from "./report-files.ts";
import { dollarsOf, sayFailure, sayUntrusted, type EvalCommandOptions } from "./eval-command.ts";
import { resumedRun, startedRun, type ChosenExperiment } from "./experiment-runs.ts";
import { untilEnded } from "./follow-experiment.ts";

/** Options of `reeve eval fork`, as texts from the command line. */
export interface ForkRunsOptions extends Pick<
  EvalCommandOptions,
  "store" | "seats" | "maxCost" | "resume" | "json" | "junit" | "markdown"
> {
  readonly runs: readonly string[];
  readonly from: string;
  readonly model?: readonly string[];
  readonly instructions?: string;
  readonly tools?: string;
  readonly variant?: string;
  readonly limit: string;
}

/**
 * Forks stored runs with changes, scores the original runs and the forks with the scorers of a file, and prints the
 * report.
 */
export async function forkStoredRuns(
  file: string,
  options: ForkRunsOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const limit = positiveInteger("--limit", options.limit);
  const maxCostUsd = dollarsOf(options.maxCost);
  const forks = await changesOf(options);
  const open = new OpenParts();
  try {
    const workspace = open.add(await openRunWorkspace({ root: process.cwd() }));
    sayUntrusted(workspace, terminal);
    const { experiment } = await onlyExperiment(file);
    await prepareReports(options);
    const onWarning = (text: string): void => terminal.say(`reeve: ${printable(text)}`);
    const store = open.add(await openOwnStore(options.store, { onWarning }));
    const runtime = open.add(
      await openRuntime({
        ...runtimeOptions(workspace),
        store,
        onError: ({ message }) => terminal.say(`reeve: ${printable(message)}`),
      }),
    );
    const chosen = await chosenRuns(store, options);
    const from = runs({ runtime, runs: chosen, at: startOf(options.from), forks, limit });
    const forking = experiment.withRuns(from, options.variant);
    const seats = options.seats === undefined ? {} : { seats: positiveInteger("--seats", options.seats) };
    const onRun = (runId: RunId): void => hostForks(runtime, forking.variants.values(), runId);
    const given = { file, experiment: forking, onRun };
    const { resume } = options;
    if (resume === undefined) await forking.countTrials(seats);
    const run =
      resume === undefined
        ? await startedRun(runtime, given, seats, maxCostUsd)
        : await resumedRun(
            runtime,
            { store, address: options.store },
            given,
            resume === true ? undefined : resume,
            maxCostUsd,
          );
    terminal.say(`${printable(forking.name)} of ${printable(file)}: ${run.runId}`);
    const ended = await untilEnded(run, terminal);
    if (ended === undefined) {
      terminal.say(
        `reeve: stopped; what is recorded is kept, and the same command with --resume ${run.runId} continues`,
      );
      return "incomplete";
    }
    sayFailure(`the same command with`, ended, terminal);
    const report = comparison(ended.result);
    for (const line of textReport(report)) await terminal.out(line);
    await writeReports([report], options);
    return endOf(report) === "incomplete" ? "incomplete" : "ok";
  } finally {
    await open.close();
  }
}

/** The report about the forks, compared with the stored runs. */
function comparison(result: ExperimentResult): ExperimentReport {
  const [stored = "", ...forks] = result.variants;
  const of = (variants: readonly string[]): ExperimentResult => ({
    ...result,
    variants,
    expectedTrials: (result.expectedTrials / result.variants.length) * variants.length,
    results: result.results.filter(({ variant }) => variants.includes(variant)),
  });
  return reportOf(of(forks), { name: "the stored runs", result: of([stored]) });
}

async function onlyExperiment(file: string): Promise<ChosenExperiment> {
  const { experiments } = await experimentsOfFile(file);
  const [experiment, other] = experiments;
  if (experiment !== undefined && other === undefined) return { file, experiment };
  throw new Fault(
    "invalid_argument",
    `${file} exports ${experiments.length} experiments (${experiments.map(({ name }) => name).join(", ")}); name a file that exports one`,
  );
}

/** Returns the changes by name: one change for each model, or a single change without a model. */
async function changesOf({
  model = [],
  instructions,
  tools,
}: ForkRunsOptions): Promise<Readonly<Record<string, ForkVariant>>> {
  if (model.length === 0 && instructions === undefined && tools === undefined)
    throw new Fault(
      "invalid_argument",
      "reeve eval fork needs a change: use --model MODEL, --instructions FILE or --tools NAMES",
    );
  const common: ForkVariant = {
    ...(instructions !== undefined && { instructions: await textOf(instructions) }),
    ...(tools !== undefined && { tools: tools.split(",").flatMap((name) => name.trim() || []) }),
  };
  if (model.length === 0) return { changed: common };
  return Object.fromEntries(model.map((name) => [name, { ...common, model: name }]));
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new Fault(
      "invalid_argument",
      `invalid --instructions ${file}: the file cannot be read (${Fault.from(cause).message}); name a file with the whole system prompt`,
      { cause },
    );
  }
}

function startOf(text: string): ForkStart {
  return /^\d{1,15}$/u.test(text) ? Number(text) : text;
}

/** Returns the ids of the runs, or the filter that selects them. */
async function chosenRuns(
  store: Store,
  { runs: words, store: address }: ForkRunsOptions,
): Promise<Parameters<typeof runs>[0]["runs"]> {
  const ids = words.filter((word) => word.startsWith("run_"));
  if (ids.length === 0) return whereQuery(words);
  if (ids.length === words.length) return Promise.all(ids.map((id) => findRunId(store, id, address)));
  throw new Fault(
    "invalid_argument",
    "invalid --runs: ids of runs and filters cannot be combined; use one of them",
  );
}

/** Lets this process execute the forks that this run of an experiment has made, but no other runs of their agents. */
function hostForks(runtime: Runtime, agents: Iterable<HostedAgent>, experimentRun: RunId): void {
  for (const agent of new Set(agents))
    runtime.register({
      name: agentNameOf(agent.id),
      resolve: ({ runId, agentId }) =>
        isForkOf(runId, experimentRun) && agentId === agent.id ? agent : undefined,
    });
}
