// Processor time of the working tree against that of a commit, both packed as they are published. A pair of processes measures one after the
// other, and the next pair in the opposite order, so that both builds meet the same disturbances.
import { execFile } from "node:child_process";
import { basename, join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { BenchEnd } from "./bench-end.ts";
import { firstRun } from "./first-run.ts";
import { commitOf, PackedSources } from "./packed-source.ts";
import { type PairRequest, pairScripts } from "./pairs-process.ts";
import { failedRow, quartilesOf, type Row } from "./row.ts";

const execute = promisify(execFile);

const firstRunName = "first-run";
const names: readonly string[] = [...Object.keys(pairScripts), firstRunName];

/** What the ratio of a row may be at most with `--gate`. */
const most = 1.05;

export const usage = `npm run bench -- pairs --against COMMIT [--rounds N] [--warm-up MS] [--json] [--gate] [ROW...]\nROW: ${names.join(", ")}`;

export interface PairsRequest {
  readonly against: string;
  readonly rounds: number;
  readonly warmUpMs: number;
  readonly rows: readonly string[];
}

function refuse(problem: string): never {
  throw new BenchEnd(`${problem}\nusage: ${usage}`, 2);
}

/** Reads the arguments and refuses those that it does not know. Without a row, all rows are measured. */
export function readArguments(args: readonly string[]): PairsRequest {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        against: { type: "string" },
        rounds: { type: "string", default: "8" },
        "warm-up": { type: "string", default: "3000" },
      },
    });
  } catch (error) {
    return refuse((error as Error).message);
  }
  const { values, positionals } = parsed;
  const { against } = values;
  if (against === undefined) return refuse("missing --against: expected a commit; use --against main");
  const integer = (option: "rounds" | "warm-up", least: number): number => {
    const value = Number(values[option]);
    if (Number.isInteger(value) && value >= least) return value;
    return refuse(`invalid --${option} "${values[option]}": expected an integer from ${least}`);
  };
  const rounds = integer("rounds", 2);
  const warmUpMs = integer("warm-up", 0);
  const unknown = positionals.find((name) => !names.includes(name));
  if (unknown !== undefined) return refuse(`unknown row "${unknown}"`);
  return { against, rounds, warmUpMs, rows: positionals.length === 0 ? names : positionals };
}

export async function* rows(args: readonly string[]): AsyncIterable<Row> {
  const { against, rounds, warmUpMs, rows: chosen } = readArguments(args);
  const commit = await commitOf(against);
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, abort);
  const sources = await PackedSources.create(stop.signal);
  try {
    console.error(`builds and packs ${against} and the working tree`);
    const theirs = await sources.pack(commit);
    const ours = await sources.pack(null);
    for (const name of chosen)
      yield await pairRow(name, { ours, theirs, rounds, warmUpMs, signal: stop.signal });
  } catch (error) {
    throw stop.signal.aborted ? new BenchEnd("stopped", 130) : error;
  } finally {
    await sources.remove();
  }
}

export interface PairOptions {
  /** Folders of the two unpacked packages. */
  readonly ours: string;
  readonly theirs: string;
  readonly rounds: number;
  /** Processor time in milliseconds that each process discards, and that it measures. */
  readonly warmUpMs: number;
  readonly measuredMs?: number;
  readonly signal?: AbortSignal;
}

/** Measures a row in pairs of processes. A package that cannot execute its script makes it a failed row. */
export async function pairRow(name: string, options: PairOptions): Promise<Row> {
  const { ours, theirs, rounds, warmUpMs, measuredMs = 1_000, signal } = options;
  const title = pairScripts[name]?.title ?? "first run of a process, with a tool call";
  const measure = (folder: string): Promise<number> =>
    name === firstRunName
      ? measureFirstRun(folder, signal)
      : measureScript(folder, { script: name, warmUpMs, measuredMs }, signal);
  try {
    const measured = await inPairs(rounds, [() => measure(ours), () => measure(theirs)]);
    return { name: title, unit: "us", goal: { atMost: most }, ...measured };
  } catch (error) {
    if (signal?.aborted === true) throw error;
    return failedRow(title, "us", (error as Error).message);
  }
}

/** Measures two sides in pairs, every other pair in the opposite order. */
export async function inPairs(
  rounds: number,
  [ours, theirs]: readonly [() => Promise<number>, () => Promise<number>],
): Promise<Pick<Row, "value" | "against" | "pairs">> {
  const [value, against]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) value.push(await ours());
    against.push(await theirs());
    if (round % 2 === 1) value.push(await ours());
  }
  const pairs = {
    value: quartilesOf(value),
    against: quartilesOf(against),
    ratio: quartilesOf(value.map((each, pair) => each / (against[pair] as number))),
  };
  return { value: pairs.value.median, against: pairs.against.median, pairs };
}

async function measureScript(
  folder: string,
  request: PairRequest,
  signal: AbortSignal | undefined,
): Promise<number> {
  return run(folder, [join(folder, "bench/pairs-process.ts"), JSON.stringify(request)], signal);
}

/** Processor time of a whole process that imports the package and does one run with a tool call. */
function measureFirstRun(folder: string, signal: AbortSignal | undefined): Promise<number> {
  const code = `${firstRun}
    const { user, system } = process.cpuUsage();
    console.log(user + system);`;
  return run(folder, ["--input-type=module", "--eval", code, "--", "call"], signal);
}

/** Runs a Node process that prints one number. */
export async function run(cwd: string, args: readonly string[], signal?: AbortSignal): Promise<number> {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  try {
    const { stdout } = await execute(process.execPath, args, { cwd, env, ...(signal && { signal }) });
    return Number(stdout);
  } catch (error) {
    if (signal?.aborted === true) throw error;
    const { stderr = "" } = error as { readonly stderr?: string };
    const said = /^\w*Error.*$/mu.exec(stderr)?.[0] ?? stderr.slice(0, 300);
    throw new Error(`the process in ${basename(cwd)} ended with ${said}`, {
      cause: error,
    });
  }
}
