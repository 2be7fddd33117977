// The work of a turn, a tool call, a delta, a spawn and a run, counted: function calls, promises, bytes, statements. The counts of memory
// repeat exactly, also on a busy machine, so that a gate can compare them with a stored table.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Counts, type ScriptName, scripts } from "./counts-process.ts";
import type { Row } from "./row.ts";

const program = fileURLToPath(new URL("counts-process.ts", import.meta.url));
const table = fileURLToPath(new URL("counts.json", import.meta.url));

/** The stored table. A count may grow above `counts` only by a line of `growth` that says why. */
interface CountTable {
  readonly counts: Readonly<Record<string, Partial<Counts>>>;
  readonly growth: readonly {
    readonly script: ScriptName;
    readonly count: keyof Counts;
    readonly to: number;
    readonly why: string;
  }[];
}

const units: Readonly<Record<keyof Counts, string>> = {
  calls: "calls",
  promises: "promises",
  allocated: "bytes",
  statements: "SQL",
  written: "bytes",
  serialisations: "JSON",
};

/** How far a count may be above its limit: counts of SQLite vary, because its timers run beside the script. */
const tolerance = { memory: 1.03, durable: 1.05 };

/**
 * Code is only interpreted, because optimised code allocates less and the moment of its compilation varies. A new space of 256 MB keeps
 * collections away while bytes are counted.
 */
const flags = [
  "--expose-gc",
  "--no-opt",
  "--no-maglev",
  "--no-sparkplug",
  "--no-lazy-feedback-allocation",
  "--no-flush-bytecode",
  "--min-semi-space-size=256",
  "--max-semi-space-size=256",
];

function countScript(name: ScriptName): Counts {
  const output = execFileSync(process.execPath, [...flags, program, name], { encoding: "utf8", env: {} });
  return JSON.parse(output) as Counts;
}

function readTable(): CountTable {
  return JSON.parse(readFileSync(table, "utf8")) as CountTable;
}

function limitOf({ counts, growth }: CountTable, script: ScriptName, count: keyof Counts): number | null {
  const accepted = growth.filter((line) => line.script === script && line.count === count);
  return accepted.at(-1)?.to ?? counts[script]?.[count] ?? null;
}

const allCounts = Object.keys(units) as (keyof Counts)[];

/**
 * How often a script is executed at most. On a busy machine, timers may fire during a script, which adds work and never
 * removes any.
 */
const mostTries = 12;

/** The lowest counts of several executions of a script. They end when `isFine` accepts every count. */
function lowestCounts(script: ScriptName, isFine: (count: keyof Counts, value: number) => boolean): Counts {
  let lowest = countScript(script);
  for (let tries = 1; tries < mostTries; tries++) {
    if (allCounts.every((count) => isFine(count, lowest[count]))) break;
    const found = countScript(script);
    lowest = Object.fromEntries(
      allCounts.map((count) => [count, Math.min(lowest[count], found[count])]),
    ) as unknown as Counts;
  }
  return lowest;
}

export async function* rows(): AsyncIterable<Row> {
  const stored = readTable();
  for (const [name, { durable }] of Object.entries(scripts)) {
    const script = name as ScriptName;
    const goal = durable ? tolerance.durable : tolerance.memory;
    const measured = lowestCounts(script, (count, value) => {
      const limit = limitOf(stored, script, count);
      return limit === null || value <= limit * goal;
    });
    for (const count of allCounts) {
      const against = limitOf(stored, script, count);
      // Scripts in memory make no statement, and zero has no ratio.
      if (against === 0 && measured[count] === 0) continue;
      yield {
        name: `${script}: ${count}`,
        value: measured[count],
        unit: units[count],
        against,
        goal: against === null ? null : { atMost: goal },
      };
    }
  }
}

/**
 * Writes the table: adds new counts, lowers counts and growth lines to what was measured, and removes scripts that no
 * longer exist.
 */
export async function update(): Promise<void> {
  const stored = readTable();
  const counts: Record<string, Counts> = {};
  const measured: Record<string, Counts> = {};
  for (const name of Object.keys(scripts) as ScriptName[]) {
    const found = countScript(name);
    measured[name] = found;
    counts[name] = Object.fromEntries(
      allCounts.map((count) => [count, Math.min(found[count], stored.counts[name]?.[count] ?? found[count])]),
    ) as unknown as Counts;
  }
  const growth = stored.growth.flatMap((line) => {
    const found = measured[line.script]?.[line.count] ?? 0;
    return found > (counts[line.script]?.[line.count] ?? 0)
      ? [{ ...line, to: Math.min(line.to, found) }]
      : [];
  });
  writeFileSync(table, `${JSON.stringify({ counts, growth }, null, 2)}\n`);
}
