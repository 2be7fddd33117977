// Writes the golden journal of today's format: `npm run golden`. See docs/why/journal.md for when to.
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { openRuntime, openStore, sha256 } from "../../src/entries/index.ts";
import type { RunHandle } from "../../src/kernel/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { findingsAfter, findingsIn, textOfFindings } from "./account.ts";
import { company, goldenOptions, goldenRuns } from "./company.ts";
import { fileOfText, formatOf, textOfFile } from "./file-text.ts";

const folder = await mkdtemp(join(tmpdir(), "reeve-golden-"));
const path = join(folder, "made.db");
await makeFile(path);
const text = textOfFile(path);
const format = formatOf(text);
const [looked, goneOn] = [join(folder, "looked.db"), join(folder, "gone-on.db")];
fileOfText(looked, text);
fileOfText(goneOn, text);
const findings = [...(await findingsIn(looked)), ...(await findingsAfter(goneOn))];
const here = import.meta.dirname;
await writeFile(join(here, `format-${format}.sql`), text);
await writeFile(join(here, `format-${format}.jsonl`), textOfFindings(findings));
await rm(folder, { recursive: true });
const written = (await readdir(here)).filter((name) => name.startsWith("format-"));
process.stdout.write(`format ${format} is written; there are ${written.join(", ")}\n`);

async function makeFile(file: string): Promise<void> {
  const clock = new FakeClock();
  const at = company();
  const store = await openStore(`sqlite:${file}`, { hash: sha256, clock });
  const runtime = await openRuntime({ ...goldenOptions(clock, "before"), store });
  for (const { begin, rests } of Object.values(goldenRuns)) {
    const handle = await begin({ runtime, clock, company: at });
    await untilItRests(handle, rests);
  }
  while (isErasing(file)) await setTimeout(5);
  await runtime.close();
  await store.close();
}

async function untilItRests(handle: RunHandle, rests: (typeof goldenRuns)[string]["rests"]): Promise<void> {
  for await (const event of handle.events()) if ("seq" in event && rests?.(event) === true) return;
}

/** Returns whether retention still has to erase texts of a run, which happens shortly after the run's end. */
function isErasing(file: string): boolean {
  const database = new DatabaseSync(file, { readOnly: true });
  const left = database.prepare("SELECT 1 FROM runs WHERE erasing = 1").get();
  database.close();
  return left !== undefined;
}
