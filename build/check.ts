// Checks the repository: node build/check.ts [--all]. `npm run check` and `npm test` call it.
import { spawn } from "node:child_process";

/** What a finished command printed, if it was not printed at once. */
interface Finished {
  readonly succeeded: boolean;
  readonly output: string;
}

/** Runs a command whose output is printed at once, or returned with the result. */
function run(command: string, output: "printed" | "returned"): Promise<Finished> {
  const [program = "", ...args] = command.split(" ");
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: output === "printed" ? "inherit" : ["ignore", "pipe", "pipe"],
    });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    child.once("error", reject).once("close", (code) => resolve({ succeeded: code === 0, output: text }));
  });
}

/** Runs the first command, prints its output at once, and runs the others beside it. Prints their output after it. */
export async function runTogether(first: string, ...others: readonly string[]): Promise<boolean> {
  const beside = others.map((command) => run(command, "returned"));
  const { succeeded } = await run(first, "printed");
  const rest = await Promise.all(beside);
  for (const { output } of rest) process.stdout.write(output);
  return succeeded && rest.every((each) => each.succeeded);
}

/** Commands of a step: the first prints its output at once, and the others run beside it. */
type Step = readonly [string, ...string[]];

/**
 * The steps of `npm run check`, and with `--all` those of `npm test`. Each starts only if the one before succeeded. The
 * linter and the tests need the processor; the commands beside them use one processor or mostly wait.
 */
export function stepsOf(args: readonly string[]): readonly Step[] {
  const gates = ["npm run format:check", "npm run dead-code"];
  return args.includes("--all")
    ? [["tsc -b"], ["npm run lint", ...gates, "node build/page.ts"], ["vitest run", "npm run test:node"]]
    : [["tsc -b"], ["npm run lint", ...gates], ["vitest run --project unit --project gates"]];
}

async function check(): Promise<boolean> {
  for (const step of stepsOf(process.argv)) if (!(await runTogether(...step))) return false;
  return true;
}

if (import.meta.main && !(await check())) process.exitCode = 1;
