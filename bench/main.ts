// npm run bench -- NAME [--json] [--gate] [--update]
import { BenchEnd } from "./bench-end.ts";
import { formatRow, meets, type Row } from "./row.ts";

interface Bench {
  readonly rows: (args: readonly string[]) => AsyncIterable<Row>;
  /** How it is started, for a bench that reads arguments of its own. Any other bench refuses them. */
  readonly usage?: string;
  /** Stores what was measured, for a bench that compares with a stored table. */
  readonly update?: () => Promise<void>;
}

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  architectures: () => import("./architectures.ts"),
  chat: () => import("./chat.ts"),
  counts: () => import("./counts.ts"),
  experiments: () => import("./experiments.ts"),
  gateway: () => import("./gateway.ts"),
  growth: () => import("./growth.ts"),
  loop: () => import("./loop.ts"),
  memory: () => import("./memory.ts"),
  nesting: () => import("./nesting.ts"),
  page: () => import("./page.ts"),
  pairs: () => import("./pairs.ts"),
  policy: () => import("./policy.ts"),
  request: () => import("./request.ts"),
  runtime: () => import("./runtime.ts"),
  scale: () => import("./scale.ts"),
  server: () => import("./server.ts"),
  sessions: () => import("./sessions.ts"),
  tools: () => import("./tools.ts"),
  workflow: () => import("./workflow.ts"),
};

const common = ["--json", "--gate", "--update"];
const [name = "", ...given] = process.argv.slice(2);
const flags = given.filter((argument) => common.includes(argument));
const own = given.filter((argument) => !common.includes(argument));
const bench = await benches[name]?.();
if (bench === undefined || (own.length > 0 && bench.usage === undefined)) {
  console.error(
    `usage: npm run bench -- NAME [--json] [--gate] [--update]\nNAME: ${Object.keys(benches).join(", ")}`,
  );
  process.exit(2);
}

const { rows, update } = bench;
if (flags.includes("--update")) {
  if (update === undefined) {
    console.error(`the bench ${name} has no stored table; leave out --update`);
    process.exit(2);
  }
  await update();
}
const measured: Row[] = [];
try {
  for await (const row of rows(own)) {
    measured.push(row);
    if (!flags.includes("--json")) console.log(formatRow(row));
  }
} catch (error) {
  if (!(error instanceof BenchEnd)) throw error;
  console.error(error.message);
  process.exit(error.exitCode);
}
if (flags.includes("--json")) console.log(JSON.stringify(measured, null, 2));
const missed = measured.filter((row) => !meets(row));
if (missed.length > 0) console.error(`\n${missed.length} of ${measured.length} rows miss their goal`);
process.exit(flags.includes("--gate") && missed.length > 0 ? 1 : 0);
