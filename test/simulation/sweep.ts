import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { runSeed } from "./run-seed.ts";
import { shrink } from "./shrink.ts";
import { workloads } from "./workloads/index.ts";

/**
 * Simulates many seeds, and reduces each failing seed to few faults: `npm run test:simulation -- --seeds 1000 [--from 1]
 * [--workload NAME]`. `--from` continues a sweep that was stopped.
 */
const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    workload: { type: "string" },
    "first-only": { type: "boolean", default: false },
  },
});

const [seeds, from] = [numberOf("seeds", values.seeds), numberOf("from", values.from)];
const chosen = [...workloads.values()].filter(({ name }) => (values.workload ?? name) === name);
if (chosen.length === 0)
  throw new Error(
    `unknown workload ${JSON.stringify(values.workload)}: use one of ${[...workloads.keys()].join(", ")}`,
  );

/** The scenarios that `found/scenarios.test.ts` repeats. */
const found = new URL("found/scenarios/", import.meta.url);

const began = performance.now();
let [done, faults, simulatedMs, failed] = [0, 0, 0, 0];

function progress(seed: number): string {
  const seconds = (performance.now() - began) / 1_000;
  const speed = `${(done / seconds).toFixed(1)} seeds/s`;
  const hours = `${(simulatedMs / 3_600_000).toFixed(1)} simulated hours`;
  return `seed ${seed} of ${from + seeds - 1}: ${faults} faults, ${hours}, ${failed} failed, ${speed}`;
}

for (let seed = from; seed < from + seeds; seed++)
  for (const workload of chosen) {
    const report = await runSeed(workload, seed);
    done++;
    faults += report.faults.length;
    simulatedMs += report.simulatedMs;
    if (report.violations.length > 0) {
      failed++;
      if (values["first-only"]) {
        process.stdout.write(`\nseed ${seed} of ${workload.name}: ${report.violations.join("; ")}\n`);
        process.exit(1);
      }
      const { limits, text, report: smallest } = await shrink(workload, seed, report);
      process.stdout.write(`\n${text}\n`);
      const scenario = { workload: workload.name, seed, limits, violations: smallest.violations };
      mkdirSync(found, { recursive: true });
      writeFileSync(
        new URL(`${workload.name}-${seed}.json`, found),
        `${JSON.stringify(scenario, null, 2)}\n`,
      );
    }
    if (process.stdout.isTTY) process.stdout.write(`\r${progress(seed)}`);
    else if (done % 200 === 0) process.stdout.write(`${progress(seed)}\n`);
  }
process.stdout.write(`\n${progress(from + seeds - 1)}\n`);
process.exit(failed === 0 ? 0 : 1);

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1)
    throw new Error(`invalid --${name} ${JSON.stringify(text)}: expected a whole number of at least 1`);
  return number;
}
