// Checks the repository: node build/check.ts [--all | --full]. `npm run check`, `npm test` and `npm run test:full` call it.
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";

/** Runs a command and prints its output at once. Returns whether it succeeded. */
function runVisibly(command: string): Promise<boolean> {
  const [program = "", ...args] = command.split(" ");
  return new Promise((resolve, reject) => {
    spawn(program, args, { stdio: "inherit" })
      .once("error", reject)
      .once("close", (code) => resolve(code === 0));
  });
}

/** Runs a command, and prints one line when it ends. Returns its output if it failed. */
function runQuietly(command: string): Promise<string | undefined> {
  const [program = "", ...args] = command.split(" ");
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (piece: string) => (output += piece));
    child.once("error", reject).once("close", (code) => {
      process.stdout.write(`\n${command}: ${code === 0 ? "succeeded" : "failed"}\n`);
      resolve(code === 0 ? undefined : output);
    });
  });
}

/**
 * Runs the first command, prints its output at once, and runs the others beside it. The output of a command beside it
 * is printed only if that command failed, so that the output ends with what went wrong or with the first command.
 */
export async function runTogether(first: string, ...others: readonly string[]): Promise<boolean> {
  const beside = others.map(runQuietly);
  const succeeded = await runVisibly(first);
  const failures = (await Promise.all(beside)).filter((output) => output !== undefined);
  for (const output of failures) process.stdout.write(output);
  return succeeded && failures.length === 0;
}

/** Commands of a step: the first prints its output at once, and the others run beside it. */
type Step = readonly [string, ...string[]];

/** Compiles the sources into `dist`, which some tests and the examples import. It takes a third of the time of `tsc -b`. */
const compile = "tsc -b src src/surfaces src/testing";

/**
 * The steps of `npm run check`, with `--all` those of `npm test`, and with `--full` those of `npm run test:full`. Each starts
 * only if the one before succeeded. The tests start beside the linter, because they leave a processor idle while they load. The
 * linter reports the errors of types outside `src`, too: it has loaded the types for its rules, so that this takes a third of the
 * time of `tsc -b`. The suite `gates` runs `npm run dead-code` on the repository with planted violations, and fails on any other,
 * too. The tests of `npm run check` hardly wait, so that it starts one process for each processor: each further one loads all
 * sources once more, which costs a sixth of the processor time.
 */
export function stepsOf(args: readonly string[]): readonly Step[] {
  const gates = ["npm run lint -- --type-check", "npm run format:check"];
  const build: Step = [compile, "node build/page.ts"];
  if (args.includes("--full")) return [build, ["vitest run", ...gates], ["npm run test:node"]];
  if (args.includes("--all")) return [build, ["vitest run", ...gates]];
  const workers = `--maxWorkers=${availableParallelism()}`;
  return [[compile], [`vitest run ${workers} --project unit --project web --project gates`, ...gates]];
}

async function check(): Promise<boolean> {
  // The compiler and the linter end soon, so that collecting garbage less often saves a tenth of their time.
  process.env["GOGC"] ??= "400";
  if (process.argv.includes("--full")) process.env["REEVE_TESTS"] = "full";
  for (const step of stepsOf(process.argv)) if (!(await runTogether(...step))) return false;
  return true;
}

if (import.meta.main && !(await check())) process.exitCode = 1;
