// Three levels of children against those of pi. Needs `npm ci --prefix bench/peers/pi`.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { inPairs, run } from "./pairs.ts";
import type { PairRequest } from "./pairs-process.ts";
import { failedRow, type Row } from "./row.ts";

const rounds = 8;
const name = "run with three levels of children, against pi's nesting";
const repository = fileURLToPath(new URL("../", import.meta.url));
const program = fileURLToPath(new URL("pairs-process.ts", import.meta.url));
const peer = fileURLToPath(new URL("peers/pi/nesting.mjs", import.meta.url));

/** Processor time of a run. A process measures after a warm-up, because the compiler needs longer for more code. */
export async function* rows(): AsyncIterable<Row> {
  if (!existsSync(fileURLToPath(new URL("peers/pi/node_modules", import.meta.url)))) {
    yield failedRow(name, "us", "the package is not installed; run npm ci --prefix bench/peers/pi");
    return;
  }
  const request: PairRequest = { script: "nesting", warmUpMs: 4_000, measuredMs: 1_000 };
  const measured = await inPairs(rounds, [
    () => run(repository, [program, JSON.stringify(request)]),
    () => run(repository, [peer, JSON.stringify(request)]),
  ]);
  yield { name, unit: "us", goal: { atMost: 1.5 }, ...measured };
}
