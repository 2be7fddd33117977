// npm run bench -- NAME [--json] [--gate] [--update]
import { formatRow, meets, type Row } from "./row.ts";

interface Bench {
  readonly rows: () => AsyncIterable<Row>;
  /** Stores what was measured, for a bench that compares with a stored table. */
  readonly update?: () => Promise<void>;
}

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  architectures: () => import("./architectures.ts"),
  counts: () => import("./counts.ts"),
  gateway: () => import("./gateway.ts"),
  growth: () => import("./growth.ts"),
  loop: () => import("./loop.ts"),
  memory: () => import("./memory.ts"),
  page: () => import("./page.ts"),
  policy: () => import("./policy.ts"),
  request: () => import("./request.ts"),
  runtime: () => import("./runtime.ts"),
  scale: () => import("./scale.ts"),
  server: () => import("./server.ts"),
  sessions: () => import("./sessions.ts"),
  tools: () => import("./tools.ts"),
  workflow: () => import("./workflow.ts"),
};

const [name = "", ...flags] = process.argv.slice(2);
const unknown = flags.filter((flag) => !["--json", "--gate", "--update"].includes(flag));
const load = benches[name];
if (load === undefined || unknown.length > 0) {
  console.error(
    `usage: npm run bench -- NAME [--json] [--gate] [--update]\nNAME: ${Object.keys(benches).join(", ")}`,
  );
  process.exit(2);
}

const { rows, update } = await load();
if (flags.includes("--update")) {
  if (update === undefined) {
    console.error(`the bench ${name} has no stored table; leave out --update`);
    process.exit(2);
  }
  await update();
}
const measured: Row[] = [];
for await (const row of rows()) {
  measured.push(row);
  if (!flags.includes("--json")) console.log(formatRow(row));
}
if (flags.includes("--json")) console.log(JSON.stringify(measured, null, 2));
const missed = measured.filter((row) => !meets(row));
if (missed.length > 0) console.error(`\n${missed.length} of ${measured.length} rows miss their goal`);
process.exit(flags.includes("--gate") && missed.length > 0 ? 1 : 0);
