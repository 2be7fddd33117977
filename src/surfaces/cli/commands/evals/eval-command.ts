import { openRuntime } from "../../../../assembly/open-runtime.ts";
import {
  baselinePath,
  endOf,
  readBaseline,
  refuseRequests,
  reportOf,
  requireBaseline,
  textReport,
  writeBaseline,
  type Baseline,
  type ExperimentInput,
  type ExperimentReport,
  type ExperimentResult,
} from "../../../../experiments/index.ts";
import { Fault, type Runtime, type Store } from "../../../../kernel/index.ts";
import type { Workspace } from "../../../../workspace/workspace.ts";
import { experimentsOfFile, ProjectEvals, type EvalFile } from "../../../../workspace/workspace-evals.ts";
import { guardedLines, isConfirmed } from "../../setup/ask-trust.ts";
import { OpenParts } from "../../setup/open-parts.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { openRunWorkspace } from "../../setup/run-agent.ts";
import { runtimeOptions } from "../../setup/run-workspace.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { positiveInteger } from "../../terminal/number-option.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { untilEnded, type EndedExperiment } from "./follow-experiment.ts";
import { prepareReports, writeReports } from "./report-files.ts";
import { missingBudget, resumedRun, startedRun, type ChosenExperiment } from "./experiment-runs.ts";

/** The options of `reeve eval`, as texts from the command line. */
export interface EvalCommandOptions {
  readonly store: string;
  readonly filter?: string;
  readonly tag?: readonly string[];
  readonly trials?: string;
  readonly maxCost?: string;
  readonly seats?: string;
  readonly save?: string;
  readonly baseline?: string;
  readonly resume?: string | true;
  readonly offline?: boolean;
  readonly json?: string;
  readonly junit?: string;
  readonly markdown?: string;
}

/** Runs the experiments of the given files, or of the workspace, and reports the results of their scores. */
export async function evalCommand(
  given: readonly string[],
  options: EvalCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  // `--resume` takes an optional value, so that a file may follow it.
  const fileAfter =
    typeof options.resume === "string" && !options.resume.startsWith("run_") ? options.resume : undefined;
  const files = fileAfter === undefined ? given : [...given, fileAfter];
  const resume = fileAfter === undefined ? options.resume : true;
  const input = inputOf(options);
  const maxCostUsd = dollarsOf(options.maxCost);
  const open = new OpenParts();
  const allow = options.offline === true ? refuseRequests() : undefined;
  try {
    const workspace = open.add(await openRunWorkspace({ root: process.cwd() }));
    sayUntrusted(workspace, terminal);
    const chosen = await chosenExperiments(files, workspace, terminal);
    requireOne(chosen, options, resume);
    const baseline = await baselineOf(options.baseline, workspace, chosen);
    const { project } = workspace.places;
    const savePath = options.save === undefined ? undefined : baselinePath(project, options.save);
    for (const { experiment } of chosen) {
      // The first baseline of an experiment cannot be compared with another one.
      if (savePath === undefined) requireBaseline(experiment.gates, baseline !== undefined);
      if (resume === undefined) await experiment.countTrials(input);
    }
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
    const reports: ExperimentReport[] = [];
    for (const each of chosen) {
      const report = await carriedOut(
        each,
        { store, address: options.store, runtime, input, maxCostUsd, resume, baseline },
        terminal,
      );
      if (report === undefined) return "incomplete";
      for (const line of textReport(report)) await terminal.out(line);
      reports.push(report);
    }
    await writeReports(reports, options);
    if (savePath !== undefined) await save(savePath, reports, terminal);
    return exitKindOf(reports);
  } finally {
    allow?.();
    await open.close();
  }
}

/** Prints which settings of an untrusted project have no effect. Prices and limits may be among these settings. */
export function sayUntrusted(workspace: Workspace, terminal: Terminal): void {
  const settings = guardedLines(workspace).filter((line) => /settings(?:\.local)?\.json/u.test(line));
  if (settings.length === 0) return;
  terminal.say("reeve: without trust these settings have no effect; reeve trust accepts them:");
  for (const line of settings) terminal.say(line);
}

/** Values that all experiments of the command share. */
interface Carrying {
  readonly store: Store;
  readonly address: string;
  readonly runtime: Runtime;
  readonly input: ExperimentInput;
  readonly maxCostUsd: number | undefined;
  readonly resume: string | true | undefined;
  readonly baseline: Baseline | undefined;
}

/** Starts or resumes a run, follows it to its end, and returns its report. `undefined` if the person has interrupted it. */
async function carriedOut(
  chosen: ChosenExperiment,
  { store, address, runtime, input, maxCostUsd, resume, baseline }: Carrying,
  terminal: Terminal,
): Promise<ExperimentReport | undefined> {
  const { experiment, file } = chosen;
  const run =
    resume === undefined
      ? await startedRun(runtime, chosen, input, maxCostUsd)
      : await resumedRun(
          runtime,
          { store, address },
          chosen,
          resume === true ? undefined : resume,
          maxCostUsd,
        );
  terminal.say(`${printable(experiment.name)} of ${printable(file)}: ${run.runId}`);
  const ended = await untilEnded(run, terminal);
  if (ended === undefined) {
    terminal.say(
      `reeve: stopped; what is recorded is kept, and reeve eval ${file} --resume ${run.runId} continues`,
    );
    return undefined;
  }
  const { result } = ended;
  sayFailure(`reeve eval ${file}`, ended, terminal);
  return reportOf(baseline === undefined ? { ...result, gates: onMeans(result.gates) } : result, baseline);
}

/**
 * Prints why a run failed, and what is missing to continue it. `command` is the command that continues it with
 * `--resume`.
 */
export function sayFailure(
  command: string,
  { result: { runId, status }, failure }: EndedExperiment,
  terminal: Terminal,
): void {
  if (failure !== null) terminal.say(`reeve: ${runId}: ${printable(failure.message)}`);
  const missing = missingBudget(runId, status, failure);
  if (missing !== undefined) terminal.say(`reeve: ${command} --resume ${runId} ${missing}`);
}

/** Returns the gates except those that compare with a baseline. */
function onMeans(gates: ExperimentResult["gates"]): ExperimentResult["gates"] {
  const kept = Object.entries(gates).flatMap(([scorer, { mean }]) =>
    mean === undefined ? [] : [[scorer, { mean }] as const],
  );
  return Object.fromEntries(kept);
}

function inputOf({ filter, tag, trials, seats, maxCost, offline }: EvalCommandOptions): ExperimentInput {
  return {
    ...(filter !== undefined && { filter }),
    ...(tag !== undefined && { tags: tag }),
    ...(trials !== undefined && { trials: positiveInteger("--trials", trials) }),
    ...(seats !== undefined && { seats: positiveInteger("--seats", seats) }),
    ...(maxCost !== undefined && { meteredScorers: true }),
    ...(offline === true && { offline }),
  };
}

export function dollarsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const usd = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(usd) && usd > 0) return usd;
  throw new Fault("invalid_argument", `invalid --max-cost ${text}: expected dollars above 0, such as 2.50`);
}

/** Returns the experiments of the given files, or those of the workspace, which must be trusted. */
async function chosenExperiments(
  files: readonly string[],
  workspace: Workspace,
  terminal: Terminal,
): Promise<readonly ChosenExperiment[]> {
  const loaded: EvalFile[] = [];
  if (files.length === 0) loaded.push(...(await trustedEvals(workspace, terminal)));
  for (const file of files) loaded.push(await experimentsOfFile(file));
  const chosen = loaded.flatMap(({ file, experiments }) =>
    experiments.map((experiment) => ({ file, experiment })),
  );
  for (const [at, { experiment, file }] of chosen.entries()) {
    const other = chosen.findIndex((each) => each.experiment.name === experiment.name);
    if (other !== at)
      throw new Fault(
        "invalid_argument",
        `${chosen[other]?.file} and ${file} both have an experiment ${experiment.name}; give each one a different name`,
      );
  }
  return chosen;
}

async function trustedEvals({ places }: Workspace, terminal: Terminal): Promise<readonly EvalFile[]> {
  const evals = await ProjectEvals.find(places);
  if (!(await evals.isTrusted())) {
    for (const file of evals.files) terminal.say(`  ${printable(file)}`);
    if (!terminal.canAsk)
      throw new Fault(
        "permission_denied",
        `the experiments of ${places.project} are code that is not trusted as it is now; name the files that you want to run, as in reeve eval ${evals.files[0] ?? "FILE"}, or run reeve eval at a terminal`,
      );
    if (!(await isConfirmed(places.project, terminal)))
      throw new Fault("permission_denied", "the experiments are not trusted, and no case was run");
    await evals.trust();
  }
  return evals.load();
}

/** Checks options that are valid only for one run or one stored result. */
function requireOne(
  chosen: readonly ChosenExperiment[],
  { save: saved, baseline }: Pick<EvalCommandOptions, "save" | "baseline">,
  resume: string | true | undefined,
): void {
  const option =
    (saved !== undefined && "--save") ||
    (baseline !== undefined && "--baseline") ||
    (typeof resume === "string" && "--resume RUN");
  if (option === false || chosen.length === 1) return;
  throw new Fault(
    "invalid_argument",
    `${option} concerns one experiment, and ${chosen.length} are chosen (${chosen.map(({ experiment }) => experiment.name).join(", ")}); name a file that exports one`,
  );
}

async function baselineOf(
  name: string | undefined,
  { places }: Workspace,
  chosen: readonly ChosenExperiment[],
): Promise<Baseline | undefined> {
  if (name === undefined) return undefined;
  const path = baselinePath(places.project, name);
  const result = await readBaseline(path);
  const [only] = chosen;
  if (only !== undefined && result.name !== only.experiment.name)
    throw new Fault(
      "invalid_argument",
      `the baseline ${path} is of experiment ${result.name}, and not of ${only.experiment.name}; name another one with --baseline`,
    );
  return { name, result };
}

/**
 * Stores the results as a baseline. Throws if some results are missing, because later comparisons with the baseline
 * would be wrong.
 */
async function save(path: string, [report]: readonly ExperimentReport[], terminal: Terminal): Promise<void> {
  if (report === undefined) return;
  if (endOf(report) === "incomplete")
    return terminal.say(`reeve: ${path} is not written, because cases failed to run or have no result`);
  await writeBaseline(path, report.result);
  terminal.say(`reeve: wrote the baseline ${path}`);
}

function exitKindOf(reports: readonly ExperimentReport[]): ExitKind {
  const ends = reports.map(endOf);
  if (ends.includes("incomplete")) return "incomplete";
  return ends.includes("gate_failed") ? "gate_failed" : "ok";
}
